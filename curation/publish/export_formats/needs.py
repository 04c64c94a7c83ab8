"""Needs of judging beyond token comparison, and formats that carry them."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from curation.verify.programs.checkers import as_script
from curation.verify.programs.problem import CodeLang, CodeProblem


class Need(StrEnum):
    """A need of judging beyond token comparison, in words."""

    UNJUDGED = "no tests that judge them"
    CPP = "C++"
    PROGRAM = "a function judged by a test program"
    CALLS = "a function"
    OTHER_CALLS = "a function with keywords, a tolerance, no argument or a class of its own"
    COMPILED_CHECKER = "a checker in C++"
    CHECKER = "a checker in Python"
    TOLERANCE = "numbers that may differ"
    SPACES = "white space that counts"
    CASE = "letters of either case"


ANYTHING = frozenset(Need) - {Need.UNJUDGED}
"""Needs that formats with our judge, or a user's, carry."""

CARRIES: Mapping[str, frozenset[Need]] = {"open-r1": frozenset({Need.CPP, Need.CHECKER})}
"""Needs that formats with the trainer's own scorer carry."""


def needs_of(program: CodeProblem) -> set[Need]:
    """Return the needs of a program's judging."""
    needs = {Need.UNJUDGED} if program.refused is not None else set()
    if program.lang is CodeLang.CPP:
        needs.add(Need.CPP)
    function, comparison = program.function, program.comparison
    if function is not None:
        plain = "." not in function.entry or function.entry.startswith("Solution.")
        positional = all(call.args and not call.kwargs for call in function.calls)
        calls = Need.CALLS if plain and positional and function.tolerance is None else Need.OTHER_CALLS
        needs.add(Need.PROGRAM if function.program is not None else calls)
    elif program.checker is not None:
        needs.add(Need.CHECKER if as_script(program.checker) is not None else Need.COMPILED_CHECKER)
    else:
        if comparison.tolerant:
            needs.add(Need.TOLERANCE)
        if comparison.space_change_sensitive:
            needs.add(Need.SPACES)
        # where no letter is expected, a program that prints one is wrong whatever its case
        if not comparison.case_sensitive and any(test.output.lower() != test.output.upper() for test in program.tests):
            needs.add(Need.CASE)
    return needs
