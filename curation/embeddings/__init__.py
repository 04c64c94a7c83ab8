"""Compute sentence embeddings."""
