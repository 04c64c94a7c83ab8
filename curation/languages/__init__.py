"""Identify a text's language, mixtures of languages, and whether three texts share one.

Invariant: nothing is imported here, so that callers who need words only do not load the rest.
"""
