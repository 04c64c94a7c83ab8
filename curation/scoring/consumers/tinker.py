"""A data set of tinker-cookbook."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import chz
import tinker
from tinker_cookbook import renderers
from tinker_cookbook.rl.problem_env import ProblemGroupBuilder
from tinker_cookbook.rl.types import Env, EnvGroupBuilder, RLDataset, RLDatasetBuilder, StepResult
from tinker_cookbook.tokenizer_utils import get_tokenizer

from curation.scoring.trainers import awaited_score


class GoldilocksEnv(Env):
    """A problem with its messages and record."""

    def __init__(self, renderer: renderers.Renderer, row: Mapping[str, Any]) -> None:
        self.renderer, self.messages, self.record = renderer, row["messages"], row["goldilocks"]

    async def initial_observation(self) -> tuple[Any, Any]:
        """Return the prompt's tokens and the stop sequences."""
        return self.renderer.build_generation_prompt(self.messages), self.renderer.get_stop_sequences()

    async def step(self, action: list[int], *, extra: Any = None) -> StepResult:  # noqa: ARG002 - its signature
        """Return a response's reward; the episode ends."""
        message, _ = self.renderer.parse_response(action)
        score = await awaited_score(self.record, message["content"])
        return StepResult(
            reward=score.reward or 0.0,
            episode_done=True,
            next_observation=tinker.ModelInput.empty(),
            next_stop_condition=self.renderer.get_stop_sequences(),
            metrics={"correct": score.reward or 0.0, "verifier_failed": float(score.reward is None)},
            logs={"outcome": score.outcome},
        )


class GoldilocksDataset(RLDataset):
    """Batches of one group per problem, in random order."""

    def __init__(
        self, rows: Sequence[Mapping[str, Any]], batch_size: int, group_size: int, renderer: Any, seed: int
    ) -> None:
        self.rows = random.Random(seed).sample(list(rows), len(rows))
        self.batch_size, self.group_size, self.renderer = batch_size, group_size, renderer

    def get_batch(self, index: int) -> Sequence[EnvGroupBuilder]:
        """Return a step's groups."""
        rows = self.rows[index * self.batch_size : (index + 1) * self.batch_size]
        return [
            ProblemGroupBuilder(partial(GoldilocksEnv, self.renderer, row), self.group_size, "goldilocks")
            for row in rows
        ]

    def __len__(self) -> int:
        return math.ceil(len(self.rows) / self.batch_size)


@chz.chz
class GoldilocksDatasetBuilder(RLDatasetBuilder):
    """Reads an exported set: ``file`` is its `train.jsonl`."""

    file: str
    model_name_for_tokenizer: str
    renderer_name: str
    batch_size: int = 64
    group_size: int = 16
    seed: int = 0

    async def __call__(self) -> tuple[GoldilocksDataset, None]:
        """Return the training set and no test set."""
        tokenizer = get_tokenizer(self.model_name_for_tokenizer)
        renderer = renderers.get_renderer(self.renderer_name, tokenizer=tokenizer)
        rows = [json.loads(line) for line in Path(self.file).read_text(encoding="utf-8").rstrip("\n").split("\n")]
        return GoldilocksDataset(rows, self.batch_size, self.group_size, renderer, self.seed), None
