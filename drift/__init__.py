"""What moved: windows, rules, problems and insights, and the jobs that keep them."""
