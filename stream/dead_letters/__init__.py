"""Looking at dead letters, replaying and dropping them."""
