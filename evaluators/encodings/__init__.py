"""Decodes encoded sequences in a text, nested ones too. Linear in the length of the text."""

from ragtide.evaluators.encodings.decode import NAMES, DecodedText, Piece, decode_text, encodings_in

__all__ = ["NAMES", "DecodedText", "Piece", "decode_text", "encodings_in"]
