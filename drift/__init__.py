"""Windows, rules, problems and insights, and the jobs that compute them."""
