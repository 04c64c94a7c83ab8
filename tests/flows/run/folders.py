"""Runs to their end, and what is in their folders."""

from __future__ import annotations

from pathlib import Path

from tests.flows.conftest import Said, goldilocks


def run(recipe: Path, folder: Path, *overrides: str) -> Said:
    """Run a recipe to its end."""
    done = goldilocks("run", recipe, "--out", folder, *(part for one in overrides for part in ("--set", one)))
    assert done.status == 0, done.err
    return done


def contents(folder: Path, pattern: str = "*") -> dict[str, bytes]:
    """The bytes of each file of a folder."""
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob(pattern) if file.is_file()}


def times(folder: Path, pattern: str = "*") -> dict[Path, int]:
    """When each file of a folder was written."""
    return {file: file.stat().st_mtime_ns for file in folder.rglob(pattern) if file.is_file()}


def card(folder: Path) -> str:
    """The card of a run's set."""
    return (folder / "curated" / "README.md").read_text(encoding="utf-8")
