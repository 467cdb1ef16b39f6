"""When a window is bad."""
