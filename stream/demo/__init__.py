"""The demo: a small real RAG application, faults switched on by a schedule, and the view that shows them found."""
