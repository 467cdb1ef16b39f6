"""Simulated series whose changes are known, and detectors judged on them."""
