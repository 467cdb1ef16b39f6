"""Faults seeded in product code, each with the tests that must find it: `python -m tests.faults [NAME ...]`."""
