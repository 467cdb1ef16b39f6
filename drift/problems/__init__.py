"""What a problem is, what happens to it and who says so: a fold over events of jobs and of people."""
