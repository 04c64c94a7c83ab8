"""Stored attempts of curation and training runs, as training data."""
