"""Input drift: whether and how users' questions differ from earlier ones, by their vectors."""
