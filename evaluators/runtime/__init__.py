"""Runs models: files, batches of tokens, devices, memory. It depends on neither the encoder nor the other models."""
