"""All that talks to brokers: the Faust driver and app, clients, topics, election of a leader."""
