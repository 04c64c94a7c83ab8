"""Rows of files, hub sets and contest packages into problems."""
