"""Identify a text's languages.

Invariant: imports nothing, so that callers of words alone stay fast.
"""
