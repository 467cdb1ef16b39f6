"""Compare scores of perturbed questions with those of their originals, and of repeated questions with each other.

Its checks are found by `ragtide.drift.jobs`; nothing else is imported from here.
"""
