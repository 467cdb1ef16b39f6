"""Windows as pure functions of the stored rows, and the watermark that closes them."""
