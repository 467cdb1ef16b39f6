"""Statistics shared by the rooms of drift. Pure: imports none of them."""
