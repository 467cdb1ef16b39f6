"""Grafana dashboards as code, rendered from the evaluators' specs."""
