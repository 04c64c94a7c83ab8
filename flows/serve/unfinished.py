"""Finds a set's missing training or refresh, since events may be lost."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from curation.config.schedule import ScheduleSettings
from curation.records import ConfigError
from curation.storage.locks import is_locked
from flows.run.training import check_train_recipe

ANNOUNCED = "announced"  # in the run folder: the newest announced version
FIRST = "announced_first"  # in the run folder: the newest version before serving; it starts nothing
REFRESHED = "refreshed"  # in a training stage's folder: the set's version after its model's refresh


def training_folder(folder: Path, version: int) -> Path:
    """Return the folder of training on a version."""
    return folder / "training" / f"{version:04}"


def training_data(folder: Path) -> str:
    """Return the override that trains on a run's set."""
    return f'data={{ kind = "curated", folders = [{json.dumps(str(folder / "curated"))}] }}'


def trainer_of(path: Path, schedule: ScheduleSettings, folder: Path) -> Path | None:
    """Return the schedule's checked training recipe, if any."""
    if schedule.train is None:
        return None
    trainer = (path.parent / schedule.train).absolute()
    if not trainer.is_file():
        raise ConfigError(f"recipe {path}: schedule.train = {schedule.train!r}: there is no file {trainer}.")
    check_train_recipe(trainer, [training_data(folder)])
    return trainer


def trained_stages(folder: Path) -> list[Path]:
    """Return finished training stages' folders, in order."""
    return [path.parent.parent for path in sorted((folder / "training").glob("[0-9]*/model/config.json"))]


def announced_version(folder: Path) -> int:
    """Return the newest announced version's number, or 0."""
    return _number(folder / ANNOUNCED)


def no_more_rounds(folder: Path, version: int, rounds: int | None) -> bool:
    """Return whether this version's stage may not begin."""
    enough = rounds is not None and len(trained_stages(folder)) >= rounds
    return enough and not training_folder(folder, version).exists()


def checkpoint(folder: Path, version: int) -> dict[str, str]:
    """Return a refresh's parameters for a version's model."""
    stage = training_folder(folder, version)
    return {"folder": str(folder), "policy": str(stage / "model"), "attempts": str(stage / "attempts.jsonl")}


def unfinished(folder: Path, schedule: ScheduleSettings) -> tuple[str, dict[str, Any]] | None:
    """Return the flow, with its identifying parameters, that the newest announced version misses."""
    version = announced_version(folder)
    if schedule.train is None or version <= _number(folder / FIRST):
        return None
    stage = training_folder(folder, version)
    if not (stage / "model" / "config.json").exists():
        if no_more_rounds(folder, version, schedule.rounds) or is_locked(folder / "training"):
            return None
        return "train-stage", {"folder": str(folder), "version": version}
    if (stage / REFRESHED).exists() or is_locked(folder):
        return None
    return "refresh", checkpoint(folder, version)


def _number(mark: Path) -> int:
    return int(mark.read_text(encoding="utf-8")) if mark.exists() else 0
