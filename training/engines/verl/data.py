"""Write a recipe's problems as `goldilocks export --format verl` does, with the recipe's own prompt."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import polars as pl

from curation.prompts import Prompt
from curation.prompts.asked import Asked
from curation.publish.export_formats.rows import TYPES, ExportedProblem, row_of
from curation.storage.stages import write_parquet
from training.rollouts.tasks import TrainingTask

FORMAT = "verl"


def write_verl_set(tasks: Iterable[TrainingTask], prompt: Prompt, file: Path) -> int:
    """Write the tasks for verl in order; return their number."""
    rows = [row_of(FORMAT, _exported(task, prompt, number)) for number, task in enumerate(tasks)]
    types = {name: dtype for name, dtype in TYPES.items() if name in rows[0]}
    file.parent.mkdir(parents=True, exist_ok=True)
    write_parquet(file, pl.DataFrame(rows, schema_overrides=types, infer_schema_length=None))
    return len(rows)


def _exported(task: TrainingTask, prompt: Prompt, number: int) -> ExportedProblem:
    request = task.request
    row = {
        "id": task.id,
        "group": task.id,
        "source": "",
        "lang": request.lang,
        "pass_rate": None,
        "correct": task.correct,
        "judged": task.judged,
        "domain": request.domain.value,
        "statement": request.statement,
        "answer": task.reference_answer,
        "raw_answer": task.raw_answer,
        "accepted": task.accepted,
        "scorer": task.scorer,
    }
    # verl's own scorers would read the tests there; ours has the record
    tests: list[dict[str, str]] | None = None if task.code_problem is None else []
    messages = [{"role": one["role"], "content": one["content"]} for one in prompt.messages(request)]
    return ExportedProblem(row, number, messages, task.code_problem, tests, Asked(prompt, judges=task.judges))
