"""Finds problems that overlap with benchmarks, and drops them."""
