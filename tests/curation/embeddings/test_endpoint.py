"""Vectors of servers: the right one for each text, whatever goes wrong in between."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from curation.config import EndpointModel
from curation.embeddings.endpoint import EmbeddingEndpoint
from tests.curation.embeddings.embedding_server import EmbeddingServer, embedding_server, vector_of
from tests.patience import patient

TEXTS = [f"text number {number} of {number * 7} words" for number in range(11)]


@pytest.fixture(autouse=True)
def four_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four texts in a request, and short pauses."""
    monkeypatch.setattr("curation.embeddings.endpoint.BATCH", 4)
    patient(monkeypatch, retries=3)


def endpoint(*servers: EmbeddingServer, **changes: object) -> EmbeddingEndpoint:
    """An embedder that asks these servers."""
    values = {"kind": "endpoint", "model": "words", "revision": "1", "urls": tuple(server.url for server in servers)}
    return EmbeddingEndpoint(EndpointModel.model_validate({**values, **changes}))


def unit(texts: list[str]) -> NDArray[np.float64]:
    vectors = np.array([vector_of(text) for text in texts])
    scaled: NDArray[np.float64] = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return scaled


@pytest.mark.parametrize("plan", ["", "503 429", "short nan garbage"])
def test_every_text_gets_its_vector_once(plan: str) -> None:
    with embedding_server(plan) as server:
        vectors = endpoint(server).embed(TEXTS)
    assert vectors.dtype == np.float32
    assert vectors == pytest.approx(unit(TEXTS), abs=1e-6)
    assert sorted(server.texts) == sorted(TEXTS)
    assert sorted(len(texts) for texts in server.asked) == [3, 4, 4]


def test_two_servers_share_the_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("curation.embeddings.endpoint.BATCH", 1)
    with embedding_server() as first, embedding_server() as second:
        vectors = endpoint(first, second, in_flight=1).embed(TEXTS)
        assert first.texts
        assert second.texts
    assert vectors == pytest.approx(unit(TEXTS), abs=1e-6)


def test_a_long_text_is_cut_and_its_length_names_the_vectors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("curation.embeddings.endpoint.MAX_LETTERS", 8)
    with embedding_server() as server:
        embedder = endpoint(server)
        embedder.embed(["a text of many letters", ""])
        assert server.texts == ["a text o", " "]
        assert embedder.name == "words@1 8"
        assert embedder.embed([]).shape == (0, 0)


@pytest.mark.parametrize("batch", [1, 64])
def test_texts_that_are_refused_by_themselves_are_told_and_the_others_get_their_vectors(
    batch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("curation.embeddings.endpoint.BATCH", batch)
    outcomes: dict[int, str | None] = {}
    with embedding_server() as server:
        server.refuses = "number 7"
        vectors = endpoint(server).embed(TEXTS, lambda at, why: outcomes.update({at: why.kind if why else None}))
    assert outcomes == {at: "400" if at == 7 else None for at in range(len(TEXTS))}
    expected = unit(TEXTS)
    expected[7] = 0
    assert vectors == pytest.approx(expected, abs=1e-6)
    assert sorted(server.texts) == sorted(set(TEXTS) - {TEXTS[7]})


def test_a_text_whose_vector_is_never_finite_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    patient(monkeypatch, retries=1)
    told: list[str] = []
    with embedding_server(" ".join(["nan"] * 9)) as server:
        vectors = endpoint(server).embed(["a"], lambda _, why: told.append(why.kind if why else ""))
    assert told == ["unusable"]
    assert vectors.shape == (1, 0)
