"""What rules would have raised on past windows: read as stored, judged as the jobs do, and nothing written."""
