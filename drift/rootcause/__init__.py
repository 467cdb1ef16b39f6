"""Explain a shift of a metric: where, since which version, at which stage, and by questions or by answers."""
