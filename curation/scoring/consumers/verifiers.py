"""A `Taskset` of verifiers 0.4, also for prime-rl."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import polars as pl
import verifiers.v1 as vf

from curation.records import SourceError
from curation.scoring.trainers import awaited_score


class GoldilocksData(vf.TaskData):
    """A problem; ``goldilocks`` is its record."""

    goldilocks: str
    pass_rate: float | None = None


class GoldilocksTask(vf.Task[GoldilocksData]):
    """A one-turn problem, judged as it was measured."""

    @property
    def key(self) -> str:
        """Return the problem's id."""
        return str(self.data.id)

    @vf.reward(weight=1.0)
    async def correct(self, trace: vf.Trace) -> float:
        """Return 1 for a correct response, else 0."""
        messages = trace.assistant_messages
        content = trace.last_reply
        thoughts = messages[-1].reasoning_content if messages and trace.root_reply is None else None
        message = {"content": content, "reasoning_content": thoughts}
        score = await awaited_score(self.data.goldilocks, message)
        trace.record_metric("verifier_failed", float(score.reward is None))
        return score.reward or 0.0


class GoldilocksConfig(vf.TasksetConfig):
    """The set's file, by default next to the module."""

    file: Path | None = None
    """The exported `train.parquet`."""


class GoldilocksTaskset(vf.Taskset[GoldilocksTask, GoldilocksConfig]):
    """An exported set as tasks; the export's subclass names the file."""

    FILE: Path | None = None

    def load(self) -> Iterable[GoldilocksTask]:
        """Yield the tasks in order.

        Raises:
            SourceError: no file is named.
        """
        file = self.config.file or self.FILE
        if file is None:
            raise SourceError("this taskset has no file; name the exported set with taskset.file = 'train.parquet'.")
        for row in pl.read_parquet(file, columns=["prompt", "info"]).iter_rows(named=True):
            info = json.loads(row["info"])
            messages = {message["role"]: message["content"] for message in row["prompt"]}
            data = GoldilocksData(
                id=info["id"],
                prompt=messages["user"],
                system_prompt=messages.get("system"),
                goldilocks=info["goldilocks"],
                pass_rate=info["pass_rate"],
            )
            yield GoldilocksTask(data, self.config.task)
