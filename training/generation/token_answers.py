"""Read vLLM's answers in tokens with few Python objects."""

from __future__ import annotations

import msgspec


class _Token(msgspec.Struct, gc=False):
    logprob: float


class _Logprobs(msgspec.Struct):
    content: list[_Token] | None = None


class _Span(msgspec.Struct):
    version: str
    start: int
    end: int


class Answer(msgspec.Struct):
    """A server's response."""

    finish_reason: str | None
    weight_versions: list[_Span]
    token_ids: tuple[int, ...] | None = None
    logprobs: _Logprobs | None = None


class _Body(msgspec.Struct):
    choices: list[Answer]


_DECODER = msgspec.json.Decoder(_Body)


def read_answer(content: bytes) -> Answer:
    """Return the first response of a body.

    Raises:
        ValueError: it holds none.
    """
    try:
        return _DECODER.decode(content).choices[0]
    except (msgspec.DecodeError, IndexError) as error:
        raise ValueError(str(error)) from error
