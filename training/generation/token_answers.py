"""Read vLLM's token answers with few Python objects."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec


class _Token(msgspec.Struct, gc=False):
    logprob: float


class _Logprobs(msgspec.Struct):
    content: list[_Token] | None = None


class _Span(msgspec.Struct):
    version: str
    start: int
    end: int


class _Choice(msgspec.Struct):
    finish_reason: str | None
    weight_versions: list[_Span]
    token_ids: list[int] | None = None
    logprobs: _Logprobs | None = None


class _Answer(msgspec.Struct):
    choices: list[_Choice]


_DECODER = msgspec.json.Decoder(_Answer)


@dataclass(frozen=True, slots=True)
class TokenAnswer:
    """A server's response; ``spans`` has the number of tokens by each weights' label."""

    token_ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    spans: tuple[tuple[str, int], ...]
    finish: str


def read_answer(content: bytes) -> TokenAnswer:
    """Return the first response of a body.

    Raises:
        ValueError: it holds none.
    """
    try:
        choices = _DECODER.decode(content).choices
    except msgspec.DecodeError as error:
        raise ValueError(str(error)) from error
    if not choices:
        raise ValueError("no choice")
    choice = choices[0]
    said = choice.logprobs.content if choice.logprobs is not None else None
    return TokenAnswer(
        tuple(choice.token_ids or ()),
        tuple([token.logprob for token in said or ()]),
        tuple([(span.version, span.end - span.start) for span in choice.weight_versions]),
        str(choice.finish_reason),
    )
