"""Detectors of change over window aggregates: pure, vectorised over series, with a stated run length to an alarm."""
