"""Decodes encoded sequences in a text, nested ones too. In linear time."""

from ragtide.evaluators.encodings.decode import NAMES, DecodedText, Piece, decode_layers, decode_text, encodings_in

__all__ = ["NAMES", "DecodedText", "Piece", "decode_layers", "decode_text", "encodings_in"]
