"""Compute the reward of a verl rollout; a group's rollouts get the same tests."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from curation.policies.completions import ResponseReader
from curation.records import Domain
from curation.response_formats import BOXED
from curation.scoring.record import read_record
from curation.scoring.scorer import Scorer, ScoringSettings
from curation.thinking import OPEN
from curation.verify.math_judge import Verdict
from training.recipe import TrainRecipe
from training.rewards import Reward, RewardInputs, assess
from training.rollouts.rollouts import derive_seed
from training.rollouts.verifiers import TESTS_PER_GROUP, verifier_workers


class RewardComputer:
    """Compute a process's rewards."""

    def __init__(
        self,
        recipe: TrainRecipe,
        tokenizer: Any,
        stop_ids: Collection[int],
        scorer: Scorer | None = None,
    ) -> None:
        self._recipe, self._rewards, self._tags = recipe, recipe.rewards, recipe.tags
        self._reader, self._tokenizer = ResponseReader(tokenizer, recipe.tags), tokenizer
        self._stop_ids = frozenset(stop_ids)
        self.scorer = scorer or Scorer(scoring_settings(recipe))
        self._threads = ThreadPoolExecutor(max(2 * verifier_workers(), 2), "reward")

    async def reward(
        self, record: str | Mapping[str, Any], prompt_ids: Sequence[int], response_ids: Sequence[int], group: str
    ) -> tuple[Reward, dict[str, Any]]:
        """Return a rollout's reward, and its outcome, method, answer, finish and tokens."""
        table = read_record(record)
        finish = "stop" if response_ids and response_ids[-1] in self._stop_ids else "length"
        seed = derive_seed(self._recipe.seed, f"tests:{group}")

        async def ask(text: str) -> Verdict:
            submit = partial(self.scorer.submit, table, text, seed=seed, finish=finish)
            future = await asyncio.get_running_loop().run_in_executor(self._threads, submit)
            return (await asyncio.wrap_future(future))[0]

        inputs = RewardInputs(
            Domain(table["domain"]),
            str(table.get("statement") or ""),
            self.text(prompt_ids, response_ids),
            len(response_ids),
            None,
            tags=self._tags,
            finish=finish,
            row=str(table["id"]),
        )
        found = await assess(ask, inputs, self._rewards)
        outcome = found.outcome.value if found.outcome is not None else None
        told = {"outcome": outcome, "method": found.method, "answer": found.answer, "finish": finish}
        return found.reward, {**told, "tokens": len(response_ids)}

    def text(self, prompt_ids: Sequence[int], response_ids: Sequence[int]) -> str:
        """Return a rollout's text, including its prompt's last tags."""
        decoded = str(self._tokenizer.decode(list(response_ids), skip_special_tokens=True))
        return self._reader.text(prompt_ids, response_ids, decoded)


def scoring_settings(recipe: TrainRecipe) -> ScoringSettings:
    """Return a recipe's scoring settings."""
    return ScoringSettings(
        thinking=OPEN,
        response_format=BOXED,
        workers=verifier_workers(),
        tests_run=TESTS_PER_GROUP,
        all_tests=recipe.rewards.code == "proportional",
    )
