"""What the encoder and the other models run on: their files, batches of tokens, devices. Knows neither of them."""
