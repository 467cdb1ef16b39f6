"""Comparison of two runs: which metrics changed, with confidence."""
