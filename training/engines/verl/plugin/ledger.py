"""Hold the trainer process's one `GroupLedger`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from curation.records import Domain, PromptRequest
from curation.scoring.record import MARK, read_record
from curation.storage.stages import atomic_write
from training.engines.verl.data import START
from training.engines.verl.groups import GroupLedger
from training.engines.verl.run_facts import run_facts
from training.engines.verl.stages import STATE
from training.rollouts.tasks import TrainingTask

_LEDGERS: list[GroupLedger] = []


def open_ledger(rows: Iterable[Mapping[str, Any]], checkpoints: Path) -> GroupLedger:
    """Make the process's ledger, restored from verl's newest checkpoint."""
    facts = run_facts()
    tasks = {str(row["extra_info"]["id"]): _task(row["extra_info"]) for row in rows}
    ledger = GroupLedger(facts.recipe, tasks, facts.out)
    state = _newest_state(checkpoints)
    if state is not None:
        ledger.restore(state)
    _LEDGERS[:] = [ledger]
    return ledger


def the_ledger() -> GroupLedger:
    """Return the process's ledger."""
    return _LEDGERS[0]


def save_state(step: int, checkpoint: Path) -> bool:
    """Close a step, save the ledger, and return whether the stage ended."""
    ledger = the_ledger()
    has_ended = ledger.at_checkpoint(step)
    atomic_write(checkpoint / STATE, json.dumps(ledger.state(), ensure_ascii=False) + "\n")
    return has_ended


def _task(about: Mapping[str, Any]) -> TrainingTask:
    table, start = read_record(about[MARK]), about[START]
    request = PromptRequest(str(table["id"]), str(table["statement"]), Domain(table["domain"]), table["lang"] or "en")
    return TrainingTask(
        request,
        table.get("answer"),
        judged=int(start["judged"]),
        correct=int(start["correct"]),
        deferred=bool(start["deferred"]),
    )


def _newest_state(checkpoints: Path) -> Mapping[str, Any] | None:
    latest = checkpoints / "latest_checkpointed_iteration.txt"
    if not latest.exists():
        return None
    text = (checkpoints / f"global_step_{latest.read_text().strip()}" / STATE).read_text(encoding="utf-8")
    state: Mapping[str, Any] = json.loads(text)
    return state
