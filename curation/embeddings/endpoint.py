"""Embeds texts with OpenAI-compatible servers (`/embeddings`).

Invariants: vectors are matched by index; unusable answers are requested again; refused requests are split.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import numpy as np

from curation.config.policies import EndpointModel
from curation.embeddings.base import Floats, OnOutcome, scaled
from curation.policies.client import ServerClient, ServerResponse
from curation.policies.servers import Server, TemporaryFailure
from curation.records import PolicyError, RequestRefused

MAX_LETTERS = 2000
"""Characters of a text that are sent."""

BATCH = 64
"""Texts of a request."""


class EmbeddingEndpoint:
    """Servers of an embedding model, as an `Embedder`.

    Raises:
        PolicyError: the key is missing; on embedding: no server answers.
    """

    def __init__(self, settings: EndpointModel) -> None:
        self._settings = settings
        self.name = f"{settings.name} {MAX_LETTERS}"

    def embed(self, texts: Sequence[str], on_outcome: OnOutcome | None = None) -> Floats:
        """Return unit vectors, texts × width, zeros for refused texts; not inside an event loop.

        Raises:
            RequestRefused: without `on_outcome`.
            PolicyError: no server can answer.
        """
        if not texts:
            return np.zeros((0, 0), dtype=np.float32)
        found = asyncio.run(self._ask(texts, on_outcome))
        widths = {len(vector) for vector in found if vector is not None}
        if len(widths) > 1:
            raise PolicyError(
                f"embedder {self.name}: the servers give vectors of several widths; do all hold one model?"
            )
        zeros = [0.0] * max(widths, default=0)
        return scaled(np.array([zeros if vector is None else vector for vector in found], dtype=np.float32))

    async def _ask(self, texts: Sequence[str], on_outcome: OnOutcome | None) -> list[list[float] | None]:
        model = self._settings.model
        vectors: list[list[float] | None] = [None] * len(texts)
        async with ServerClient(self._settings, model, welcome=_welcome) as client:

            async def ask_for(part: range) -> None:
                sent = [texts[at][:MAX_LETTERS] or " " for at in part]  # no server takes a text without letters

                def read(server: Server, response: ServerResponse) -> list[list[float]]:
                    client.require_ok(response, server.url)
                    return _vectors(response, len(sent))

                body = {"model": model, "input": sent, "encoding_format": "float"}
                about = f"vectors of texts, from number {part.start} on"
                refusal: RequestRefused | None = None
                try:
                    vectors[part.start : part.stop] = await client.ask("/embeddings", lambda: body, read, about)
                except RequestRefused as refused:
                    if on_outcome is None:
                        raise
                    refusal = refused
                if refusal is not None and len(part) > 1:
                    await ask_for(part[: len(part) // 2])
                    await ask_for(part[len(part) // 2 :])
                elif on_outcome is not None:
                    for at in part:
                        on_outcome(at, refusal)

            starts = range(0, len(texts), BATCH)
            await asyncio.gather(*(ask_for(range(len(texts))[start : start + BATCH]) for start in starts))
        return vectors


async def _welcome(_url: str, _context: int | None) -> None:
    return None


def _vectors(response: ServerResponse, count: int) -> list[list[float]]:
    """Return vectors by text index.

    Raises:
        TemporaryFailure: they are unusable.
    """
    try:
        entries = {int(entry["index"]): list(map(float, entry["embedding"])) for entry in response.json()["data"]}
        vectors = [entries[index] for index in range(count)]
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise TemporaryFailure(f"200, but no vectors of {count} texts: {response.text!r:.120}", "unusable") from error
    if not all(vector and np.isfinite(vector).all() for vector in vectors):
        raise TemporaryFailure(f"200, but a vector is none of finite numbers: {response.text!r:.120}", "unusable")
    return vectors
