"""The data card of a curated set."""
