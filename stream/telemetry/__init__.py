"""What operators and probes see of a process: metrics, health, logs."""
