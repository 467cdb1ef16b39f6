"""The composition root: settings, command line, lanes on Kafka, replay, and the processes around them."""
