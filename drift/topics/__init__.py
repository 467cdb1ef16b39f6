"""What users ask about: a versioned model of topics, fitted by a job; by it every trace gets its topic on arrival."""
