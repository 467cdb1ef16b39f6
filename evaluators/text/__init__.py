"""Text tools of the evaluators: tokens, sentences, phrases, JSON, and what models say of texts."""
