"""Recipes that run by themselves, and the Prefect server of a run."""
