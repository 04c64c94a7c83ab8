"""Reward functions in the signatures of other trainers. Each finds a problem's record in its row and asks `Scorer`.

    verl         custom_reward_function.path=FILE custom_reward_function.name=verl_score   (the export writes FILE)
    TRL, open-r1 GRPOTrainer(reward_funcs=trl_reward)
    AReaL        areal_reward, as the reward function of its RLVR workflow
    slime        --custom-rm-path curation.scoring.trainers.slime_reward
    verifiers    vf.Rubric(funcs=[verifiers_reward])

Further keywords are those of `ScoringSettings`. A response on which the verifier failed is worth None where the trainer
leaves such out (TRL), and 0 elsewhere, told apart by what comes with it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from curation.records import SourceError
from curation.scoring.record import MARK
from curation.scoring.scorer import Score, ScoringSettings, shared_scorer

_SETTINGS = frozenset(ScoringSettings.__dataclass_fields__)


def verl_score(
    data_source: str,  # noqa: ARG001 - verl's signature
    solution_str: str,
    ground_truth: str,  # noqa: ARG001
    extra_info: Mapping[str, Any] | None = None,
    **settings: Any,
) -> dict[str, float | str]:
    """Return verl's score of a response: ``score`` and ``acc`` (1 or 0), the outcome, and whether the judge failed.

    Raises:
        SourceError: ``extra_info`` has no record.
    """
    (score,) = _scored([((extra_info or {}).get(MARK), solution_str)], settings)
    reward = score.reward or 0.0
    return {"score": reward, "acc": reward, "outcome": score.outcome, "excluded": float(score.reward is None)}


def trl_reward(
    completions: Sequence[Any],
    goldilocks: Sequence[str] | None = None,
    **others: Any,
) -> list[float | None]:
    """Return TRL's rewards of a batch: 1, 0, or None where the verifier failed, which TRL leaves out.

    Args:
        completions: texts, or conversations whose last message is the response.
        goldilocks: the column of that name.
    """
    settings = {name: value for name, value in others.items() if name in _SETTINGS}
    records: Sequence[str | None] = goldilocks or [None] * len(completions)
    pairs = [(record, last_text(completion)) for record, completion in zip(records, completions, strict=True)]
    return [score.reward for score in _scored(pairs, settings)]


def areal_reward(
    prompt: str,  # noqa: ARG001 - AReaL's signature
    completions: str,
    prompt_ids: Sequence[int],  # noqa: ARG001
    completion_ids: Sequence[int],  # noqa: ARG001
    goldilocks: str | None = None,
    **others: Any,
) -> float:
    """Return AReaL's reward of one response."""
    settings = {name: value for name, value in others.items() if name in _SETTINGS}
    return _scored([(goldilocks, completions)], settings)[0].reward or 0.0


async def slime_reward(_args: Any, sample: Any, **_others: Any) -> float:
    """Return slime's reward of a sample, whose ``metadata`` has the record; settings are the defaults."""
    pair = ((sample.metadata or {}).get(MARK), sample.response)
    return (await asyncio.to_thread(_scored, [pair], {}))[0].reward or 0.0


async def verifiers_reward(completion: Any, info: Mapping[str, Any], **_others: Any) -> float:
    """Return the reward of a rollout of verifiers, whose ``info`` has the record; settings are the defaults."""
    pair = (info.get(MARK), last_text(completion))
    return (await asyncio.to_thread(_scored, [pair], {}))[0].reward or 0.0


def last_text(completion: Any) -> str:
    """Return the text of a response: itself, or the last message of a conversation, thoughts split off put back."""
    if isinstance(completion, str):
        return completion
    message = completion[-1]
    thoughts = message.get("reasoning_content") or message.get("reasoning")
    content = str(message.get("content") or "")
    return f"<think>{thoughts}</think>{content}" if thoughts else content


def _scored(pairs: Sequence[tuple[Any, str]], settings: Mapping[str, Any]) -> list[Score]:
    if any(record is None for record, _ in pairs):
        raise SourceError(
            f"a row has no `{MARK}` record, by which it would be judged; export the set again with `goldilocks "
            "export`, and keep that column."
        )
    return shared_scorer(ScoringSettings(**settings)).score(list(pairs))
