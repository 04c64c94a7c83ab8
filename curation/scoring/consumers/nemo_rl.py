"""A one-turn environment of NeMo RL, judged by ``ground_truth``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import ray
import torch
from nemo_rl.distributed.ray_actor_environment_registry import ACTOR_ENVIRONMENT_REGISTRY
from nemo_rl.distributed.virtual_cluster import PY_EXECUTABLES
from nemo_rl.environments.interfaces import EnvironmentInterface, EnvironmentReturn
from nemo_rl.environments.utils import ENV_REGISTRY, register_env

from curation.scoring.trainers import scores_of, without_end

NAME = "goldilocks"
"""In ``data.default.env_name`` and ``env``."""


@ray.remote
class GoldilocksEnvironment(EnvironmentInterface):
    """Judges final responses; settings are in ``env.goldilocks``."""

    def __init__(self, settings: Mapping[str, Any] | None = None) -> None:
        self._settings = settings or {}

    def step(
        self, message_log_batch: Sequence[Sequence[Mapping[str, Any]]], metadata: Sequence[Mapping[str, Any]]
    ) -> EnvironmentReturn:
        """Return a batch's rewards; every conversation ends."""
        texts = ["".join(str(m["content"]) for m in log if m["role"] == "assistant") for log in message_log_batch]
        records = [entry["ground_truth"] for entry in metadata]
        pairs = [(record, without_end(text)) for record, text in zip(records, texts, strict=True)]
        scores = scores_of(pairs, self._settings)
        outcomes = [f"Environment: {score.outcome}" for score in scores]
        return EnvironmentReturn(
            observations=[{"role": "environment", "content": text} for text in outcomes],
            metadata=list(metadata),
            next_stop_strings=[None] * len(texts),
            rewards=torch.tensor([score.reward or 0.0 for score in scores]),
            terminateds=torch.ones(len(texts)),
            answers=[score.answer for score in scores],
        )

    def global_post_process_and_metrics(self, batch: Any) -> tuple[Any, dict[str, float]]:
        """Set truncated responses' rewards to 0; return the batch and its accuracy."""
        batch["rewards"] = batch["rewards"] * batch["is_end"]
        return batch, {"accuracy": float(batch["rewards"].mean())}


def register_goldilocks() -> None:
    """Register the environment, before NeMo RL reads data."""
    name = f"{__name__}.GoldilocksEnvironment"
    ACTOR_ENVIRONMENT_REGISTRY.setdefault(name, PY_EXECUTABLES.SYSTEM)
    if NAME not in ENV_REGISTRY:
        register_env(NAME, name)
