"""Rows in ClickHouse, always through its HTTP protocol."""
