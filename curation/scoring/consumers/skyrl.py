"""A one-turn environment of skyrl_gym."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from skyrl_gym.envs.base_text_env import BaseTextEnv, BaseTextEnvStepOutput
from skyrl_gym.envs.registration import register, registry

from curation.scoring.trainers import exported_score

NAME = "goldilocks"
"""In a set's column `env_class`."""


class GoldilocksEnv(BaseTextEnv):
    """A problem; ``extras["reward_spec"]["ground_truth"]`` is the record."""

    def __init__(self, env_config: Any = None, extras: Mapping[str, Any] | None = None) -> None:  # noqa: ARG002
        super().__init__()
        self.record = (extras or {}).get("reward_spec", {}).get("ground_truth")
        self.verifier_failed = 0.0

    def step(self, action: str) -> BaseTextEnvStepOutput:
        """Return a response's reward; the episode ends."""
        score = exported_score(self.record, action)
        self.verifier_failed = float(score.reward is None)
        metadata = {"outcome": score.outcome}
        return BaseTextEnvStepOutput(observations=[], reward=score.reward or 0.0, done=True, metadata=metadata)

    def get_metrics(self) -> dict[str, float]:
        """Return whether the verifier failed."""
        return {"verifier_failed": self.verifier_failed}


def register_goldilocks() -> None:
    """Register the environment in each process."""
    if NAME not in registry:
        register(id=NAME, entry_point=f"{__name__}:GoldilocksEnv")
