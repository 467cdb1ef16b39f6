"""Text tools of the evaluators: tokens, sentences, phrases, JSON, and scores of models."""
