"""Where results go: ClickHouse, Grafana, memory; one protocol and one contract suite for all that store rows."""
