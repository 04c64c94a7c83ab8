"""Runs recipes on a machine's GPUs, or writes cluster files."""
