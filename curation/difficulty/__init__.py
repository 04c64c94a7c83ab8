"""Measures how hard a problem is for a policy."""
