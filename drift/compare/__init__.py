"""Two runs beside each other: what changed, and how sure that is."""
