"""Serve recipes on schedules, with a Prefect server."""
