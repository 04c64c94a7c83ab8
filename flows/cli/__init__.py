"""The `goldilocks` command."""

from flows.cli.entry import app, main

__all__ = ["app", "main"]
