"""Finds the curation runs in a folder and below it.

Safety: a run's name in an address is looked up among these, and never becomes a path.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from flows.run.training import is_training

DEPTH = 3
"""Max depth of runs below the folder."""

ITSELF = "run"
"""The name of the folder itself."""

_NO_RUNS = frozenset(
    "attempts chosen checkpoints curated decisions model plots service stages tensorboard verdicts versions".split()
)


@dataclass(frozen=True, slots=True)
class ShownRun:
    """A run by its name in addresses.

    Example: ``ShownRun("math~newer", Path("runs/math/newer"))``
    """

    name: str
    folder: Path

    @property
    def title(self) -> str:
        """Return the name for people."""
        return self.folder.name if self.name == ITSELF else self.name.replace("~", "/")


def find_runs(root: Path, only: Sequence[str] = ()) -> list[ShownRun]:
    """Return the curation runs in a folder and below it.

    Args:
        only: shown folders; empty for all.
    """
    if not root.is_dir():
        return []
    return [
        ShownRun("~".join(folder.relative_to(root).parts) or ITSELF, folder)
        for folder in _folders(root, DEPTH)
        if not is_training(folder) and (not only or folder.relative_to(root).parts[:1] in [(name,) for name in only])
    ]


def _folders(folder: Path, depth: int) -> Iterator[Path]:
    if (folder / "run.json").is_file():
        yield folder
    if depth == 0:
        return
    with os.scandir(folder) as entries:
        inner = sorted(entry.name for entry in entries if entry.is_dir(follow_symlinks=False))
    for name in inner:
        if name not in _NO_RUNS and not name.startswith("."):
            yield from _folders(folder / name, depth - 1)
