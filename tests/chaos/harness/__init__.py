"""Faults by seed against a whole installation, and a ledger that everything stored is held against afterwards."""
