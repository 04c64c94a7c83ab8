"""Find stored attempts at solving, except those of evaluations, whose problems are held out."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from curation.prompts.solving import asks_to_solve
from curation.records import AttemptKey, SourceError
from curation.storage.attempts import AttemptStore
from training.recipe import CuratedData, DataSettings
from training.rollouts.attempt_log import ATTEMPTS, KIND, TRAINING_ATTEMPTS

COLUMNS = ("problem", "index", "text", "finish", "token_ids", "logprobs", "step")


@dataclass(frozen=True, slots=True)
class StoredSource:
    """A store of attempts, ``trained`` if it is a training run's."""

    run: Path
    store: AttemptStore
    trained: bool

    @property
    def policy(self) -> str:
        """Return the answering policy, as ``model@revision``."""
        return self.store.key.policy

    def tables(self) -> Iterator[pl.DataFrame]:
        """Yield its attempts that have a text."""
        for table in self.store.tables(COLUMNS):
            yield table.filter(pl.col("text").is_not_null())


def run_folders(runs: Sequence[str], data: DataSettings, folder: Path) -> list[Path]:
    """Return the folders of runs whose attempts are used.

    Args:
        runs: named in the recipe; if empty, those that made the sets of ``data``.
        folder: base of relative paths.

    Raises:
        SourceError: there is no run, or a folder keeps no attempts.
    """
    if runs:
        named = [folder / Path(name).expanduser() for name in runs]
    elif isinstance(data, CuratedData):
        named = list(dict.fromkeys((folder / Path(name).expanduser()).parent for name in data.folders))
    else:
        raise SourceError(f"stored.runs is empty, and data of kind {data.kind} come from no run; name runs")
    for run in named:
        if not (run / ATTEMPTS).is_dir():
            raise SourceError(f"{run} keeps no attempts (no {ATTEMPTS}/ in it); name the runs in stored.runs")
    return named


def stored_sources(runs: Sequence[Path]) -> list[StoredSource]:
    """Return the stores of attempts at solving, by run and name.

    Raises:
        SourceError: there is none.
    """
    sources = [
        source for run in runs for path in sorted((run / ATTEMPTS).glob("*/key.json")) for source in _open(run, path)
    ]
    if not sources:
        raise SourceError(
            f"{', '.join(map(str, runs))}: no attempts at solving problems are stored there; name other runs"
        )
    return sources


def _open(run: Path, path: Path) -> Iterator[StoredSource]:
    content = json.loads(path.read_text(encoding="utf-8"))
    trained = content.get("kind") == KIND
    if trained and content["purpose"] != TRAINING_ATTEMPTS:
        return
    if asks_to_solve(content["prompt"]):
        key = AttemptKey(content["policy"], content["prompt"], content["sampling"])
        yield StoredSource(run, AttemptStore(run / ATTEMPTS, key, create=False), trained)


def licences(data: DataSettings, folder: Path) -> list[str]:
    """Return the licence on each set's card, or `unknown`."""
    if not isinstance(data, CuratedData):
        return ["apache-2.0"]
    return [_licence(folder / Path(name).expanduser() / "README.md") for name in data.folders]


def _licence(card: Path) -> str:
    lines = card.read_text(encoding="utf-8").splitlines() if card.exists() else []
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("license:")), "unknown")
