"""The reward of a rollout of verl's, from its tokens and its row's record: format, verdict, length, language.

As `training.rollouts.rollouts` does it, with the same functions: the format is looked at first, then the verifier is
asked by the record that travels with the row (`curation.scoring`), then `training.rewards` counts. All rollouts of a
group are judged by the same tests.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from curation.policies.completions import ResponseReader
from curation.records import Domain
from curation.response_formats import BOXED
from curation.scoring.record import read_record
from curation.scoring.scorer import Scorer, ScoringSettings
from training.recipe import TrainRecipe
from training.rewards import LanguageChecker, Reward, RewardInputs, compute_reward, format_error
from training.rollouts.rollouts import derive_seed
from training.rollouts.verifiers import TESTS_PER_GROUP, verifier_workers


class RewardComputer:
    """Rewards of one process. A context manager is its scorer; here it lives as long as the process.

    Args:
        stop_ids: tokens that end a response.
        check_language: needed where languages are rewarded.
        scorer: the judge; one of its own if missing.
    """

    def __init__(
        self,
        recipe: TrainRecipe,
        tokenizer: Any,
        stop_ids: Collection[int],
        check_language: LanguageChecker | None = None,
        scorer: Scorer | None = None,
    ) -> None:
        self._recipe, self._rewards, self._tags = recipe, recipe.rewards, recipe.tags
        self._reader, self._tokenizer = ResponseReader(tokenizer, recipe.tags), tokenizer
        self._stop_ids, self._check_language = frozenset(stop_ids), check_language
        self.scorer = scorer or Scorer(scoring_settings(recipe))

    def reward(
        self, record: str | Mapping[str, Any], prompt_ids: Sequence[int], response_ids: Sequence[int], group: str
    ) -> tuple[Reward, dict[str, Any]]:
        """Return the reward of one rollout, and what is told of it: outcome, method, answer, finish and tokens."""
        table = read_record(record)
        domain, statement = Domain(table["domain"]), str(table.get("statement") or "")
        finish = "stop" if response_ids and response_ids[-1] in self._stop_ids else "length"
        text = self.text(prompt_ids, response_ids)
        told: dict[str, Any] = {"outcome": None, "method": "", "answer": None, "finish": finish}
        told["tokens"] = len(response_ids)
        outcome, passed = None, None
        failure = format_error(text, domain, self._tags, finish)
        if failure is None:
            seed = derive_seed(self._recipe.seed, f"tests:{group}")
            (verdict,) = self.scorer.submit(table, text, seed=seed, finish=finish).result()
            outcome, passed = verdict.outcome, verdict.passed
            told |= {"outcome": outcome.value, "method": verdict.method, "answer": verdict.answer}
        else:
            told["method"] = failure
        inputs = RewardInputs(domain, statement, text, len(response_ids), outcome, passed, self._tags, finish)
        return compute_reward(inputs, self._rewards, self._check_language), told

    def text(self, prompt_ids: Sequence[int], response_ids: Sequence[int]) -> str:
        """Return a rollout's text in the model's own tags, with those in front that its prompt ended in."""
        decoded = str(self._tokenizer.decode(list(response_ids), skip_special_tokens=True))
        return self._reader.text(prompt_ids, response_ids, decoded)


def scoring_settings(recipe: TrainRecipe) -> ScoringSettings:
    """Return how the rollouts of a recipe are judged."""
    return ScoringSettings(
        thinking=recipe.trained.thinking,
        response_format=BOXED,
        workers=verifier_workers(),
        tests_run=TESTS_PER_GROUP,
        all_tests=recipe.rewards.code == "proportional",
    )
