"""A worker of a lane: slices in, rows and dead letters out, acknowledged once stored."""
