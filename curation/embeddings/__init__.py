"""Compute sentence embeddings: near vectors for texts of the same meaning."""
