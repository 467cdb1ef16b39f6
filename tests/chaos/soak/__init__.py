"""A long run of one lane: half an hour of steady input, then ten minutes of full input without its sink."""
