"""Statistics that several rooms share. Pure: no room of `drift` is imported."""
