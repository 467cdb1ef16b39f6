"""Kinds of problems that jobs tell besides what rules and detectors do: one a file."""
