"""Reward functions for other trainers.

    verl         custom_reward_function.path=FILE custom_reward_function.name=verl_score   (the export writes FILE)
    TRL, open-r1 GRPOTrainer(reward_funcs=trl_reward)
    AReaL        areal_reward, as the reward function of its RLVR workflow
    slime        --custom-rm-path curation.scoring.trainers.slime_reward
    verifiers    vf.Rubric(funcs=[verifiers_reward]), before 0.4; a `Taskset` since
    ART          trajectory.reward = await art_reward(row, trajectory)

Further keywords are those of `ScoringSettings`. If the verifier failed, the reward is None for TRL, 0 elsewhere.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from typing import Any

from curation.records import SourceError
from curation.scoring.record import MARK
from curation.scoring.scorer import Score, ScoringSettings, shared_scorer

_SETTINGS = frozenset(ScoringSettings.__dataclass_fields__)

_END = re.compile(r"(?:\s*(?:<\|[^<>|]{1,40}\|>|<｜[^<>｜]{1,40}｜>|</s>|<eos>|<pad>|<end_of_turn>|<turn\|>))+\s*\Z")


def verl_score(
    data_source: str,  # noqa: ARG001 - verl's signature
    solution_str: str,
    ground_truth: str,  # noqa: ARG001
    extra_info: Mapping[str, Any] | None = None,
    **settings: Any,
) -> dict[str, float | str]:
    """Return verl's ``score`` and ``acc``, and the outcome.

    Raises:
        SourceError: ``extra_info`` has no record.
    """
    # with a reward model, verl also passes its router and tokenizer
    (score,) = scores_of([((extra_info or {}).get(MARK), solution_str)], settings)
    reward = score.reward or 0.0
    return {"score": reward, "acc": reward, "outcome": score.outcome, "excluded": float(score.reward is None)}


def trl_reward(
    completions: Sequence[Any],
    goldilocks: Sequence[str] | None = None,
    **others: Any,
) -> list[float | None]:
    """Return a batch's rewards.

    Args:
        goldilocks: the column of records.

    Raises:
        SourceError: a record is missing.
    """
    records: Sequence[str | None] = goldilocks or [None] * len(completions)
    pairs = [(record, last_message(completion)) for record, completion in zip(records, completions, strict=True)]
    return [score.reward for score in scores_of(pairs, others)]


def areal_reward(
    prompt: str,  # noqa: ARG001 - AReaL's signature
    completions: str,
    prompt_ids: Sequence[int],  # noqa: ARG001
    completion_ids: Sequence[int],  # noqa: ARG001
    goldilocks: str | None = None,
    **others: Any,
) -> float:
    """Return a response's reward."""
    return scores_of([(goldilocks, without_end(completions))], others)[0].reward or 0.0


async def slime_reward(_args: Any, sample: Any, **_others: Any) -> float | list[float]:
    """Return a sample's reward, or a group's."""
    samples = sample if isinstance(sample, list) else [sample]
    pairs = [((entry.metadata or {}).get(MARK), without_end(entry.response)) for entry in samples]
    rewards = [score.reward or 0.0 for score in await asyncio.to_thread(scores_of, pairs, {})]
    return rewards if isinstance(sample, list) else rewards[0]


async def art_reward(row: Mapping[str, Any], trajectory: Any) -> float:
    """Return a trajectory's reward, and add the outcome to its ``metadata``."""
    score = await awaited_score(row.get(MARK), last_message(trajectory.messages()))
    trajectory.metadata["outcome"] = score.outcome
    trajectory.metrics["verifier_failed"] = score.reward is None
    return score.reward or 0.0


def exported_score(record: Any, response: Any, **settings: Any) -> Score:
    """Score a response, as `scores_of`."""
    return scores_of([(record, response)], settings)[0]


async def awaited_score(record: Any, response: Any, **settings: Any) -> Score:
    """Score a response in a thread, as `exported_score`."""
    return await asyncio.to_thread(exported_score, record, response, **settings)


def without_end(text: str) -> str:
    """Remove end tokens: ``18<|im_end|>`` → ``18``."""
    return _END.sub("", text)


async def verifiers_reward(completion: Any, info: Mapping[str, Any], **_others: Any) -> float:
    """Return a rollout's reward."""
    return (await awaited_score(info.get(MARK), last_message(completion))).reward or 0.0


def last_message(completion: Any) -> Any:
    """Return a response, or a conversation's last message."""
    return completion if isinstance(completion, str) else completion[-1]


def scores_of(pairs: Sequence[tuple[Any, Any]], keywords: Mapping[str, Any]) -> list[Score]:
    """Score (record, response) pairs; of the keywords those of `ScoringSettings` count.

    Raises:
        SourceError: a record is missing or invalid.
    """
    if any(record is None for record, _ in pairs):
        raise SourceError(
            f"a row has no `{MARK}` record, by which it would be judged; export the set again with `goldilocks "
            "export`, and keep that column."
        )
    settings = {name: value for name, value in keywords.items() if name in _SETTINGS}
    if "judges" in settings:  # trainers pass a list
        settings = {**settings, "judges": tuple(settings["judges"])}
    return shared_scorer(ScoringSettings(**settings)).score(list(pairs))
