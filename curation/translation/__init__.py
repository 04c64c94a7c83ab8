"""Translate problems with a model, and check each translation."""
