"""The `goldilocks` command: its options, and what each command does and prints."""

from flows.cli.entry import app, main

__all__ = ["app", "main"]
