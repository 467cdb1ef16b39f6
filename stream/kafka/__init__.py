"""Everything that speaks to brokers: the Faust driver and app, clients, topics, who leads."""
