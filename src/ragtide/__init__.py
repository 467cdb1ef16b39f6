"""RAG in production, watched: `stream` puts together what the other packages do; `evaluators` is for plug-ins."""
