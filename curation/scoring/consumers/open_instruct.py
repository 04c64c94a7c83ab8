"""A verifier of open-instruct, registered by import."""

from __future__ import annotations

from typing import Any

from open_instruct.ground_truth_utils import VerificationResult, VerifierFunction

from curation.scoring.trainers import exported_score, without_end

NAME = "goldilocks"
"""In a set's column `dataset`."""


class GoldilocksVerifier(VerifierFunction):
    """Judges a response as its problem was measured."""

    def __init__(self, verifier_config: Any = None) -> None:
        super().__init__(NAME, verifier_config=verifier_config, weight=1.0)

    def __call__(
        self,
        tokenized_prediction: list[int],  # noqa: ARG002 - open-instruct's signature
        prediction: str,
        label: Any,
        query: str | None = None,  # noqa: ARG002
        rollout_state: dict[str, Any] | None = None,  # noqa: ARG002
    ) -> VerificationResult:
        """Return the score, with the outcome as ``reasoning``."""
        score = exported_score(label, without_end(prediction))
        return VerificationResult(score=score.reward or 0.0, reasoning=score.outcome)
