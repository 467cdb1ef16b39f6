"""One evaluator a file, named as its id."""
