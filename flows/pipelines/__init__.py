"""Pipelines and commands over runs, without their Prefect flows."""
