"""Computes sentence embeddings."""
