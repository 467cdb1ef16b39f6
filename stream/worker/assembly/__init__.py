"""Stage `assemble`: spans of OpenTelemetry in, canonical traces out."""
