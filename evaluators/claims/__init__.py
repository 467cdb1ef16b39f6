"""What texts state in so many words that a rule can read it: amounts with their units, dates, yes or no."""
