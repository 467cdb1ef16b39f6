"""Evaluating a range of a topic, or a file, into a run of its own."""
