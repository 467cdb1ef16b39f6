"""Perturbed questions against their originals, and the same question asked again: do the scores stay on their side?"""
