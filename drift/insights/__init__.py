"""What is worth knowing of a period and never pages: one kind a file."""
