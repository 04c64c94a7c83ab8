"""Prefect flows, the command line and recipes: wiring and nothing else."""
