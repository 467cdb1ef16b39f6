"""A team's first hour: plausible applications, faults, default settings."""
