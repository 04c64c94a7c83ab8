"""Finds in a model's response the programs that it wrote: one that generates inputs, perhaps one that checks them, and
wrong solutions.

The contract is that of the prompt (`curation.questions.test_programs`): the first Python block is the generator, which
reads one whole number from standard input and prints the input of that number; a second one is the validator, which
reads an input and exits with 0 if it is allowed; the others are solutions that are wrong in one way, to hunt with. The
caller runs them in the sandbox.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from curation.verify.programs.extraction import LANGUAGES, CodeLang, code_blocks
from curation.verify.programs.problem import Validator, ValidatorLang


@dataclass(frozen=True, slots=True)
class GeneratorPrograms:
    """The programs of a response. ``validator`` is None where it wrote none.

    Example: ``GeneratorPrograms("n = int(input())\\nprint(n)\\n", None)``
    """

    generator: str
    validator: str | None
    wrong: tuple[str, ...] = ()


def programs_in(response: str) -> GeneratorPrograms | None:
    """Return the programs in a response, after its thoughts; None where it holds no Python block."""
    blocks = [block.code for block in code_blocks(response) if LANGUAGES.get(block.name) is CodeLang.PYTHON]
    return GeneratorPrograms(blocks[0], blocks[1] if len(blocks) > 1 else None, tuple(blocks[2:])) if blocks else None


def validators_in(responses: Iterable[str]) -> list[Validator]:
    """Return the validators that responses wrote, each program once: they end with 0 where an input is allowed."""
    programs = [programs_in(response) for response in responses]
    codes = dict.fromkeys(one.validator for one in programs if one is not None and one.validator is not None)
    return [
        Validator(ValidatorLang.PYTHON, {f"validator{number}.py": code}, (f"validator{number}.py",), accepts=0)
        for number, code in enumerate(codes, 1)
    ]


def wrong_programs_in(responses: Iterable[str]) -> list[str]:
    """Return the wrong solutions in Python that responses wrote, each once."""
    programs = [programs_in(response) for response in responses]
    return list(dict.fromkeys(code for one in programs if one is not None for code in one.wrong))
