"""Publish a finished run's curated set, with its versions and disputed labels."""
