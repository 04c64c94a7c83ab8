"""Translate a share of the problems with a model, and check each translation."""
