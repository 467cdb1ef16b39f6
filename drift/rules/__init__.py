"""When a window is bad: one rule a file."""
