"""A model's programs that make and check tests.

The first Python block is a generator (number to input), the second a validator (ends with 0 for allowed inputs), others
are wrong solutions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from curation.prompts.base import stored_prompt, stored_texts
from curation.questions.proposals import Proposal, refusal_text
from curation.records import Domain, PromptRequest
from curation.verify.programs.extraction import LANGUAGES, code_blocks
from curation.verify.programs.problem import CodeLang, Validator, ValidatorLang

COUNT, EXAMPLES, MAX_KB = "count", "examples", "most_kb"

_EXAMPLES = 3
_EXAMPLE_BYTES = 2000
"""Max bytes of an example, since half of one misleads."""

WRONG = 5
"""Requested wrong programs."""


def _user(request: PromptRequest) -> str:
    details: Mapping[str, str] = {COUNT: "24", EXAMPLES: "", MAX_KB: "4096", **request.details}
    text = stored_texts("test_programs")["user"].replace("{wrong}", str(WRONG))
    for name in (COUNT, MAX_KB):
        text = text.replace(f"{{{name}}}", details[name])
    before, _, after = text.partition("{statement}\n{examples}")
    return f"{before}{request.statement}\n{details[EXAMPLES]}{after}{refusal_text(request)}"


PROMPT = stored_prompt("test_programs", _user)


def programs_request(
    problem: Mapping[str, Any], tests: Iterable[tuple[str, str]], designed: int, max_kb: int
) -> PromptRequest:
    """Return the request for a problem.

    Args:
        tests: in order of preference.
        designed: number of inputs to design.
        max_kb: of the largest input.
    """
    short = [(text, output) for text, output in tests if len(text) + len(output) <= _EXAMPLE_BYTES]
    examples = "".join(
        f"\nExample {number}, input:\n```\n{text.rstrip()}\n```\nOutput:\n```\n{output.rstrip()}\n```\n"
        for number, (text, output) in enumerate(short[:_EXAMPLES], 1)
    )
    details = {COUNT: str(designed), MAX_KB: str(max_kb), EXAMPLES: examples}
    return PromptRequest(problem["id"], problem["statement"], Domain.CODE, problem["lang"], details)


@dataclass(frozen=True, slots=True)
class TestPrograms:
    """A response's programs; ``validator`` may be None."""

    __test__ = False  # not a test class, whatever pytest thinks

    generator: str
    validator: str | None
    wrong: tuple[str, ...] = ()


def programs_in(response: str | None) -> TestPrograms | None:
    """Return a response's programs, or None."""
    blocks = [block.code for block in code_blocks(response or "") if LANGUAGES.get(block.name) is CodeLang.PYTHON]
    return TestPrograms(blocks[0], blocks[1] if len(blocks) > 1 else None, tuple(blocks[2:])) if blocks else None


def validators_in(responses: Iterable[str]) -> list[Validator]:
    """Return the distinct validators in responses."""
    found = map(programs_in, responses)
    validators = (programs.validator for programs in found if programs is not None)
    codes = dict.fromkeys(code for code in validators if code is not None)
    return [
        Validator(ValidatorLang.PYTHON, {f"validator{number}.py": code}, (f"validator{number}.py",), accepts=0)
        for number, code in enumerate(codes, 1)
    ]


def wrong_programs_in(responses: Iterable[str]) -> list[str]:
    """Return the distinct wrong programs in responses."""
    found = map(programs_in, responses)
    return list(dict.fromkeys(code for programs in found if programs is not None for code in programs.wrong))


TEST_PROGRAMS = Proposal(
    name="test_programs",
    title="Test programs by a model",
    prompt=PROMPT,
    read=programs_in,
    accept=lambda *_: {},
    result=pl.Schema(),
    select=lambda _problems, requests: (
        pl.DataFrame({"id": [request.id for request in requests]}, {"id": pl.String()}),
        requests,
    ),
    each=2,
    tries=2,
    nothing="no Python block",
)
