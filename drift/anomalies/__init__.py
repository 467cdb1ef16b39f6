"""Monitor every series of windows for changes from its own baseline, and report them as problems."""
