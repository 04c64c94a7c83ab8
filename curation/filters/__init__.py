"""Drops problems before any attempt is made."""
