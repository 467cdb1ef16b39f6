"""What runs on one machine with nothing installed: an embedded broker, ClickHouse and the processes around them."""
