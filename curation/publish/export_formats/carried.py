"""What a format cannot carry of a program's judging."""

from __future__ import annotations

from curation.verify.programs.checkers import as_script
from curation.verify.programs.problem import CodeProblem

OWN_SCORERS = frozenset({"open-r1"})
"""Formats whose trainer judges programs itself: by C++ or Python, tests, and checkers in Python."""


def unmet_need(form: str, program: CodeProblem) -> str | None:
    """Return the first need of a program's judging that a format does not carry, in words."""
    if program.refused is not None:
        return "no tests that judge them"
    if form not in OWN_SCORERS:
        return None
    function, comparison = program.function, program.comparison
    if function is not None and function.program is not None:
        return "a function judged by a test program"
    if function is not None:
        plain = "." not in function.entry or function.entry.startswith("Solution.")
        positional = all(call.args and not call.kwargs for call in function.calls)
        is_plain = plain and positional and function.tolerance is None
        return "a function" if is_plain else "a function with keywords, a tolerance, no argument or a class of its own"
    if program.checker is not None:
        return None if as_script(program.checker) is not None else "a checker in C++"
    if comparison.tolerant:
        return "numbers that may differ"
    if comparison.space_change_sensitive:
        return "white space that counts"
    # where no letter is expected, a program that prints one is wrong whatever its case
    has_letters = any(test.output.lower() != test.output.upper() for test in program.tests)
    return "letters of either case" if has_letters and not comparison.case_sensitive else None
