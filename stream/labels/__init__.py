"""Late facts: read from their topic, stored, joined with their traces, sent through the lanes again."""
