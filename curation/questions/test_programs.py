"""A model's programs that make and check tests.

The first Python block is a generator (number to input), the second a validator (ends with 0 for allowed inputs), others
are wrong solutions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from curation.prompts.base import Prompt
from curation.questions.proposals import Proposal, refusal_text
from curation.records import Domain, PromptRequest
from curation.verify.programs.extraction import LANGUAGES, code_blocks
from curation.verify.programs.problem import CodeLang, Validator, ValidatorLang

COUNT, EXAMPLES, MOST_KB = "count", "examples", "most_kb"

_EXAMPLES = 3
_EXAMPLE_BYTES = 2000
"""Max bytes of an example, since half of one misleads."""

SYSTEM = """\
You write tests for programming problems. A test is only useful if it is allowed by the problem's constraints and if a \
plausible but wrong or slow program fails on it."""

ASK = """\
Here is a programming problem. Programs for it read standard input and write standard output.

{statement}
{examples}
Write Python 3 programs, each in a code block of its own whose fence says python. Use the standard library only.

The first block is a generator. It reads one whole number k >= 1 from standard input and prints one complete input for \
the problem, the same one whenever it is given the same k (seed your random numbers with k). It has 10 seconds.

For 1 <= k <= {count} you design each input. Think first of the wrong and slow programs that people write for this \
problem, and give each an input on which it fails: a greedy idea, a rule that only holds in the examples, a special \
case forgotten, off by one at either end, an overflow of 32 or 64 bits, rounding, recursion that is too deep, an \
algorithm that is too slow for the limits, a search that is cut off. Have among them: the smallest input that is \
allowed; every number at its lowest and at its highest limit, alone and together; the largest inputs in the shapes \
that are worst for each algorithm (all equal, all different, sorted, reversed, alternating, a path, a star, dense); \
each special answer that there is (none, zero, impossible, a tie). Where inputs at random nearly all have the same \
answer, build the input backwards from a solution: plan the answer, then hide it, also at the largest size; and change \
such an input in one place so that it just fails.

For every k > {count} print a small input, of a few values, that a brute force would solve at once: drawn at random, \
numbers near their lowest limits, all structures that the statement allows, each kind of answer about equally often.

Every input must keep every rule of the statement, and have exactly the form that the statement and the examples show, \
its line breaks and spaces too. Keep inputs below 200 kilobytes, but for at most three that ask for speed: these may \
have up to {most_kb} kilobytes.

The second block is a validator. It reads an input of the problem from standard input and ends with exit code 0 if \
every rule of the statement is kept, else with exit code 1. Check the form to the end of the input (the number of \
lines, the number of values on each, nothing behind them), each number against its limits, and whatever the statement \
promises in words: values that differ, an order, that all is connected, that a solution exists. Check nothing that the \
statement does not say. It must be quick on the largest input.

Then up to {wrong} further blocks, each a complete program for the problem that is wrong in one way, as a good \
contestant errs: it gets the examples right, and fails on inputs that are not easy to find. Each has another mistake.

Think first, then write the blocks and nothing behind them."""

WRONG = 5
"""Wrong programs that are asked for."""


def _user(request: PromptRequest) -> str:
    details: Mapping[str, str] = {COUNT: "24", EXAMPLES: "", MOST_KB: "4096", **request.details}
    text = ASK.replace("{wrong}", str(WRONG))
    for name in (COUNT, MOST_KB):
        text = text.replace(f"{{{name}}}", details[name])
    before, _, after = text.partition("{statement}\n{examples}")
    return f"{before}{request.statement}\n{details[EXAMPLES]}{after}{refusal_text(request)}"


PROMPT = Prompt("testing@2", SYSTEM, _user)


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
    details = {COUNT: str(designed), MOST_KB: str(max_kb), EXAMPLES: examples}
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
    programs = [programs_in(response) for response in responses]
    codes = dict.fromkeys(one.validator for one in programs if one is not None and one.validator is not None)
    return [
        Validator(ValidatorLang.PYTHON, {f"validator{number}.py": code}, (f"validator{number}.py",), accepts=0)
        for number, code in enumerate(codes, 1)
    ]


def wrong_programs_in(responses: Iterable[str]) -> list[str]:
    """Return the distinct wrong programs in responses."""
    programs = [programs_in(response) for response in responses]
    return list(dict.fromkeys(code for one in programs if one is not None for code in one.wrong))


TEST_PROGRAMS = Proposal(
    name="test_programs",
    title="Test programs by a model",
    prompt=PROMPT,
    read=programs_in,
    accept=lambda *_: {},
    result=pl.Schema(),
    select=lambda _problems, requests: (
        pl.DataFrame({"id": [one.id for one in requests]}, {"id": pl.String()}),
        requests,
    ),
    each=2,
    tries=2,
    nothing="no Python block",
)
