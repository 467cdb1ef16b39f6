"""Texts in disguise: what encoded runs of a text say, runs within runs included. Linear in the text's length."""

from ragtide.evaluators.encodings.decode import NAMES, DecodedText, Piece, decode_text, encodings_in

__all__ = ["NAMES", "DecodedText", "Piece", "decode_text", "encodings_in"]
