"""Embeds texts with OpenAI-compatible servers (`/embeddings`).

Invariants: vectors are matched by index; unusable answers are requested again; refused requests are split.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

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
        settings = self._settings
        sent = [text[:MAX_LETTERS] or " " for text in texts]  # no server takes a text without letters
        vectors: list[list[float] | None] = [None] * len(sent)
        parts = [range(first, min(first + BATCH, len(sent))) for first in range(0, len(sent), BATCH)]
        async with ServerClient(settings, settings.model, welcome=_welcome) as client:

            async def ask_for(part: range) -> None:
                try:
                    vectors[part.start : part.stop] = await request(sent[part.start : part.stop], part.start)
                except RequestRefused as refused:
                    if on_outcome is None:
                        raise
                    if len(part) == 1:
                        on_outcome(part.start, refused)
                        return
                    for half in (part[: len(part) // 2], part[len(part) // 2 :]):
                        await ask_for(half)
                    return
                if on_outcome is not None:
                    for place in part:
                        on_outcome(place, None)

            async def request(part: Sequence[str], first: int) -> list[list[float]]:
                def read(server: Server, response: ServerResponse) -> list[list[float]]:
                    client.require_ok(response, server.url)
                    return _vectors(response, len(part))

                def body() -> dict[str, Any]:
                    return {"model": settings.model, "input": list(part), "encoding_format": "float"}

                return await client.ask("/embeddings", body, read, f"vectors of texts, from number {first} on")

            await asyncio.gather(*(ask_for(part) for part in parts))
        return vectors


async def _welcome(_url: str, _context: int | None) -> None:
    return None


def _vectors(response: ServerResponse, count: int) -> list[list[float]]:
    """Return vectors by text index.

    Raises:
        TemporaryFailure: they are unusable.
    """
    try:
        entries = {
            int(entry["index"]): np.asarray(entry["embedding"], dtype=np.float64) for entry in response.json()["data"]
        }
        vectors = [entries[index] for index in range(count)]
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise TemporaryFailure(f"200, but no vectors of {count} texts: {response.text!r:.120}", "unusable") from error
    if not all(vector.ndim == 1 and vector.size and np.isfinite(vector).all() for vector in vectors):
        raise TemporaryFailure(f"200, but a vector is none of finite numbers: {response.text!r:.120}", "unusable")
    return [vector.tolist() for vector in vectors]
