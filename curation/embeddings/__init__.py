"""Sentence embeddings: near vectors for texts that say the same. Who computes them is a setting."""
