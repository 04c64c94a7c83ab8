"""Sentence embeddings: near vectors for texts of the same meaning. Who computes them is a setting."""
