"""The calls by which trainers ask for the rewards of exported rows, made without the trainers.

Each function takes (row, response) pairs, rows as the trainers' loader returns them, and returns a reward each: None if
the verifier failed and the format can express that. Some trainers leave the token that ends a response in its text
(`END`). `EMULATED` are the formats whose trainer wants a class of its own: for them the body of our class's reward is
repeated here, since the class cannot be imported without the trainer.
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.request import Request, urlopen

from curation.scoring.scorer import ScoringSettings, shared_scorer
from curation.scoring.service import reward_app
from curation.scoring.trainers import (
    areal_reward,
    art_reward,
    exported_score,
    slime_reward,
    trl_reward,
    verifiers_reward,
    without_end,
)
from tests.local_server import serving

END = "<|im_end|>"

Pairs = Sequence[tuple[Mapping[str, Any], str]]
Rewards = Sequence[float | None]


def _side_by_side(pairs: Pairs, reward: Callable[[Mapping[str, Any], str], Any]) -> list[Any]:
    """Call a function of one response from two threads, since trainers do not wait for one verdict after another."""
    with ThreadPoolExecutor(2) as threads:
        return list(threads.map(lambda pair: reward(*pair), pairs))


def verl(pairs: Pairs, export: Path) -> Rewards:
    """Import the module that the export writes, as verl does."""
    spec = importlib.util.spec_from_file_location("goldilocks_reward", export / "goldilocks_reward.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    scores = _side_by_side(
        pairs,
        lambda row, text: module.verl_score(
            row["data_source"], text, row["reward_model"]["ground_truth"], row["extra_info"]
        ),
    )
    return [None if score["excluded"] else score["score"] for score in scores]


def trl(pairs: Pairs, export: Path) -> Rewards:
    """Call the reward function with a batch of conversations."""
    chats = [[{"role": "assistant", "content": text}] for _, text in pairs]
    return trl_reward(
        chats, prompts=[row["prompt"] for row, _ in pairs], goldilocks=[r["goldilocks"] for r, _ in pairs]
    )


def areal(pairs: Pairs, export: Path) -> Rewards:
    """Call the reward function with the row's columns."""
    return _side_by_side(pairs, lambda row, text: areal_reward("", text + END, [], [], **row))


def slime(pairs: Pairs, export: Path) -> Rewards:
    """Ask for a group."""
    samples = [SimpleNamespace(metadata=row["metadata"], response=text + END) for row, text in pairs]
    rewards = asyncio.run(slime_reward(None, samples))
    assert isinstance(rewards, list)
    return rewards


def art(pairs: Pairs, export: Path) -> Rewards:
    """Judge trajectories side by side."""

    async def judged() -> list[float]:
        return await asyncio.gather(*(art_reward(row, _Trajectory(text)) for row, text in pairs))

    return asyncio.run(judged())


class _Trajectory:
    def __init__(self, text: str) -> None:
        self.text, self.metadata, self.metrics = text, dict[str, Any](), dict[str, Any]()

    def messages(self) -> list[dict[str, str]]:
        return [{"role": "assistant", "content": self.text}]


def openrlhf(pairs: Pairs, export: Path) -> Rewards:
    """Ask our service as its remote reward model."""
    prompts = [row["input"][-1]["content"] for row, _ in pairs]
    body = {
        "query": [prompt + text + END for prompt, (_, text) in zip(prompts, pairs, strict=True)],
        "prompts": prompts,
        "labels": [row["label"] for row, _ in pairs],
    }
    with serving(reward_app(shared_scorer(ScoringSettings()))) as address:
        kind = {"Content-Type": "application/json"}
        with urlopen(Request(f"{address}/get_reward", json.dumps(body).encode(), kind)) as reply:
            answered = json.load(reply)
    excluded = answered["extra_logs"]["excluded"]
    return [None if failed else reward for reward, failed in zip(answered["rewards"], excluded, strict=True)]


def verifiers(pairs: Pairs, export: Path) -> Rewards:
    """Call the reward function of verifiers before 0.4, with thoughts split off."""

    def completion(text: str) -> list[dict[str, str]]:
        thoughts, mark, rest = text.partition("</think>")
        if not mark:
            return [{"role": "assistant", "content": text}]
        return [{"role": "assistant", "content": rest, "reasoning_content": thoughts.removeprefix("<think>")}]

    async def judged() -> list[float]:
        asked = (verifiers_reward(completion(text), json.loads(row["info"])) for row, text in pairs)
        return await asyncio.gather(*asked)

    return asyncio.run(judged())


def skyrl(pairs: Pairs, export: Path) -> Rewards:
    """Repeat `GoldilocksEnv.step` of SkyRL's environment."""
    return _side_by_side(pairs, lambda row, text: exported_score(row["reward_spec"]["ground_truth"], text).reward)


def open_instruct(pairs: Pairs, export: Path) -> Rewards:
    """Repeat `GoldilocksVerifier.__call__`."""
    return _side_by_side(pairs, lambda row, text: exported_score(row["ground_truth"], without_end(text + END)).reward)


def _batch(column: str, end: str = "") -> Callable[[Pairs, Path], Rewards]:
    """Return the call of a class that scores a batch by the record in a column."""

    def call(pairs: Pairs, export: Path) -> Rewards:
        asked = [(row[column], without_end(text + end)) for row, text in pairs]
        return [score.reward for score in shared_scorer(ScoringSettings()).score(asked)]

    return call


CALLS: Mapping[str, Callable[[Pairs, Path], Rewards]] = {
    "verl": verl,
    "trl": trl,
    "open-r1": trl,
    "verifiers": verifiers,
    "nemo-rl": _batch("output", END),
    "areal": areal,
    "openrlhf": openrlhf,
    "slime": slime,
    "open-instruct": open_instruct,
    "nemo-gym": _batch("goldilocks"),
    "skyrl": skyrl,
    "roll": _batch("ground_truth", END),
    "tinker": _batch("goldilocks"),
    "art": art,
}
"""By the format's name."""

EMULATED = ("verifiers", "nemo-rl", "open-instruct", "nemo-gym", "skyrl", "roll", "tinker")


def row_id(row: Mapping[str, Any]) -> str:
    """Return the problem's id in an exported row of any format."""
    places = (row, row.get("extra_info"), row.get("metadata"), json.loads(row.get("info") or "null"))
    return next(str(place["id"]) for place in places if place and place.get("id") is not None)
