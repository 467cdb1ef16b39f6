"""Behaviour as golden files: what jobs write, what a backtest finds, which sentences people read.

`python -m tests.pins` compares, `python -m tests.pins --write` writes the files of `golden/` anew. Sentences are in
`sentences.txt` and nowhere else, so a change of words changes that file only.
"""
