"""Findings of a period that never page: one kind a file, found by `registry`."""
