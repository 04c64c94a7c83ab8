"""Checks of a model, in seconds, before it is trained."""
