"""Series watched for changes: what is read of them, what is kept between runs, baselines, and the problems told."""
