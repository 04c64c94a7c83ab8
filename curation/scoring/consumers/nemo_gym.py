"""A resources server of NeMo Gym."""

from __future__ import annotations

from nemo_gym.base_resources_server import (
    BaseResourcesServerConfig,
    BaseRunRequest,
    BaseVerifyRequest,
    BaseVerifyResponse,
    SimpleResourcesServer,
)

from curation.scoring.trainers import awaited_score


class GoldilocksConfig(BaseResourcesServerConfig):
    """The server's settings; ``thinking`` overrides the records' tags."""

    thinking: str | tuple[str, str] | None = None


class GoldilocksRunRequest(BaseRunRequest):
    """A row of an exported set; ``goldilocks`` is its record."""

    goldilocks: str


class GoldilocksVerifyRequest(GoldilocksRunRequest, BaseVerifyRequest):
    """A row and its response."""


class GoldilocksVerifyResponse(BaseVerifyResponse):
    """The reward, and what decided it."""

    goldilocks: str
    outcome: str
    extracted_answer: str | None
    verifier_failed: float


class GoldilocksResourcesServer(SimpleResourcesServer):
    """Judges a response as its problem was measured."""

    config: GoldilocksConfig

    async def verify(self, body: GoldilocksVerifyRequest) -> GoldilocksVerifyResponse:
        """Return the reward of a response's text."""
        texts = [
            content.text
            for item in body.response.output
            if item.type == "message"
            for content in item.content
            if content.type == "output_text"
        ]
        score = await awaited_score(body.goldilocks, "".join(texts), thinking=self.config.thinking)
        return GoldilocksVerifyResponse(
            **body.model_dump(),
            reward=score.reward or 0.0,
            outcome=score.outcome,
            extracted_answer=score.answer,
            verifier_failed=float(score.reward is None),
        )
