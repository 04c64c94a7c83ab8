"""Rows of files, hub sets and contest packages as problems."""
