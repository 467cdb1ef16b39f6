"""Whether answers to one question that say different things are told from those that say the same."""
