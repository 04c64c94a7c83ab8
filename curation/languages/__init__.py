"""Identify a text's language and mixtures of languages.

Invariant: imports nothing, so that callers of words alone do not load the rest.
"""
