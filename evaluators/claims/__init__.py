"""Facts that rules can extract from texts: amounts with units, dates, yes or no."""
