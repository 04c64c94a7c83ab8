"""Recipes that run by themselves, and the Prefect server behind a run."""
