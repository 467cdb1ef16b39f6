"""From a raw record to a trace, and from outcomes to rows."""
