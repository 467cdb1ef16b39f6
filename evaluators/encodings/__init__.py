"""Texts in disguise: what encoded runs of a text say, runs within runs included. Linear in the text's length."""

from evaluators.encodings.decode import NAMES, Decoded, Piece, decoded, named

__all__ = ["NAMES", "Decoded", "Piece", "decoded", "named"]
