"""Problem events -> outbox -> Grafana annotations, exactly once in effect."""
