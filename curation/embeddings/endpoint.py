"""Embeddings of OpenAI-compatible servers (`/embeddings`), by the one client of servers.

Invariants, beside those of `curation.policies.client`: every text gets the vector that the answer names for it by its
index; an answer that lacks one, or has one that is no vector of finite numbers, is asked for again.

Not here: starting servers (`vllm serve MODEL --runner pooling`), or finding out which weights they hold.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from curation.config.embeddings import EndpointEmbedder
from curation.embeddings.base import Floats, scaled
from curation.policies.client import ServerClient
from curation.policies.connection import ServerResponse
from curation.policies.servers import Server, TemporaryFailure
from curation.records import PolicyError


class EmbeddingEndpoint:
    """Servers that hold one embedding model, as an `Embedder`.

    Raises:
        PolicyError: the environment lacks the key; on embedding: no server answers, or one refuses.
    """

    def __init__(self, settings: EndpointEmbedder, folder: Path) -> None:  # noqa: ARG002 - all embedders open alike
        self._settings = settings
        self.name = f"{settings.model}@{settings.revision} {settings.max_letters} {settings.prefix!r}"

    def embed(self, texts: Sequence[str]) -> Floats:
        """Return unit vectors, texts × width of the model. Called where no event loop runs.

        Raises:
            PolicyError: a server refuses, a request failed too often, or no server is alive.
        """
        if not texts:
            return np.zeros((0, 0), dtype=np.float32)
        return scaled(np.array(asyncio.run(self._ask(texts)), dtype=np.float32))

    async def _ask(self, texts: Sequence[str]) -> list[list[float]]:
        settings = self._settings
        # no server takes a text without letters
        sent = [(settings.prefix + text[: settings.max_letters]) or " " for text in texts]
        parts = [sent[first : first + settings.batch] for first in range(0, len(sent), settings.batch)]
        async with ServerClient(settings, settings.model, welcome=_welcome) as client:

            async def ask_for(part: Sequence[str], number: int) -> list[list[float]]:
                def read(server: Server, response: ServerResponse) -> list[list[float]]:
                    client.require_ok(response, server.url)
                    return _vectors(response, len(part))

                def body() -> dict[str, Any]:
                    return {"model": settings.model, "input": list(part), "encoding_format": "float"}

                return await client.ask("/embeddings", body, read, f"vectors of texts, request {number}")

            answers = await asyncio.gather(*(ask_for(part, number) for number, part in enumerate(parts)))
        vectors = [vector for answer in answers for vector in answer]
        if len({len(vector) for vector in vectors}) > 1:
            raise PolicyError(
                f"embedder {self.name}: the servers give vectors of several widths; do all hold one model?"
            )
        return vectors


async def _welcome(_url: str, _context: int | None) -> None:
    return None


def _vectors(response: ServerResponse, count: int) -> list[list[float]]:
    """Return the vectors of an answer by the index of their text.

    Raises:
        TemporaryFailure: it is no such answer.
    """
    try:
        entries = {
            int(entry["index"]): np.asarray(entry["embedding"], dtype=np.float64) for entry in response.json()["data"]
        }
        vectors = [entries[index] for index in range(count)]
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise TemporaryFailure(f"200, but no vectors of {count} texts: {response.text!r:.120}") from error
    if not all(vector.ndim == 1 and vector.size and np.isfinite(vector).all() for vector in vectors):
        raise TemporaryFailure(f"200, but a vector is none of finite numbers: {response.text!r:.120}")
    return [vector.tolist() for vector in vectors]
