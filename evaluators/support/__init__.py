"""How far the contexts of an answer carry it, word by word: for the evaluators `support` and `support_embedding`."""
