"""Topics of users' questions: a job fits a versioned model, which assigns each new trace its topic."""
