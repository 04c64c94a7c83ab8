"""The format filter for code: statements that cannot be asked as a program that reads input and prints output.

The rules, in order; the first that fires gives the reason:

    missing_statement  there is no statement, or hardly any
    interactive        the source says so, or the statement tells how to talk with a judge
    needs_files        files are read or written instead of standard input and output
    asks_function      a function is asked for, not a program
    missing_figure     the source or the statement shows pictures, or the text leans on one
    no_solution        no solution in a language that is run, other than those known to be wrong
    too_few_tests      not a single test
    several_outputs    the statement accepts any of several outputs, and no checker tells which are right

Invariants: one row in, one row out, kept or dropped with a reason and the words that decided; a rule looks at the
statement or at the tables beside it, never at outputs. `clean_statement` takes away what carries no meaning.

How many tests are enough is not decided here: tests may still be made (`curation.programs.tests_agreement`).
"""

from __future__ import annotations

import re

import polars as pl

from curation.records import DROPPED, DropReason

VERSION = "code_filters@1"

STAGE = "programs"

LEAST_LETTERS = 40
"""A statement with fewer letters says too little to be solved."""

_INTERACTIVE = re.compile(
    r"\binteractive (?:problem|task|judge|protocol)|\bthis (?:problem|task) is interactive|"
    r"flush (?:the |your )?(?:standard )?(?:output|stdout|buffer)|"
    r"\b(?:ask|make|print|pose) (?:at most |up to )?\S{1,12} (?:queries|questions) (?:to|of) (?:the )?"
    r"(?:judge|jury|grader|interactor)",
    re.IGNORECASE,
)
_FILES = re.compile(
    r"\b(?:input|output) (?:file|is (?:given|read) (?:in|from) (?:the )?file)s?:? *[\"'`]?[\w-]+\.(?:in|out|txt|dat)\b|"
    r"\b(?:read|write|written|printed)\b[^.\n]{0,40}\b(?:from|to|into) (?:the |a )?file [\"'`]?[\w-]+\.\w{2,4}",
    re.IGNORECASE,
)
_FIGURE = re.compile(
    r"<img\b|!\[[^\]]*\]\(|\\includegraphics|"
    r"\b(?:see|shown|depicted|illustrated|pictured|as) (?:in|on|by) (?:the )?"
    r"(?:figure|picture|image|diagram|illustration)\b|"
    r"\bthe (?:figure|picture|image|diagram|illustration) (?:above|below|shows|on the (?:left|right))\b",
    re.IGNORECASE,
)
_ANY_OUTPUT = re.compile(
    r"if there (?:are|is) (?:multiple|several|more than one|many)(?: \w+){0,2} "
    r"(?:answers|solutions|outputs|ways|orders)|"
    r"\b(?:print|output|report|find|choose|give|return) any(?: one)? "
    r"(?:of|such|valid|correct|possible|optimal|solution|answer|order|permutation|sequence)|"
    r"\bany (?:valid|correct|such|optimal|possible) "
    r"(?:answer|solution|output|order|one|permutation|sequence|assignment)|"
    r"\bany of them\b|\bany (?:answer|solution|order) (?:will be|is) accepted|"
    r"multiple (?:valid |correct |possible |optimal )?(?:answers|solutions|outputs)[^.\n]{0,60}(?:any|accepted)",
    re.IGNORECASE,
)

_SETTLED = re.compile(
    r"lexicographic|smallest|largest|minimum|minimal|maximum|maximal|earliest|latest|first|last|lowest|highest|shortest|"
    r"longest|alphabetic|least|greatest|fewest",
    re.IGNORECASE,
)
"""Words that settle in the same sentence which of several outputs is expected."""
_SPACES = re.compile(r"[ \t]+\n")
_BLANK = re.compile(r"\n{3,}")
_BREAKS = re.compile(r"<br\s*/?>|</p>\s*", re.IGNORECASE)
_TAGS = re.compile(r"</?(?:p|span|div|font|center|strong|em|b|i|u)(?:\s[^<>]*)?>", re.IGNORECASE)
_CREDITS = re.compile(r"^\s*(?:Problem (?:author|credit)s?|Source|Author)\s*:.*$", re.IGNORECASE | re.MULTILINE)
_IMAGE_MARK = re.compile(r"\[image\]|<image>", re.IGNORECASE)
_FENCE = re.compile(r"(^```.*?^```[^\n]*$)", re.DOTALL | re.MULTILINE)


def clean_statement(text: str) -> str:
    """Return the statement without markup tags, credits and idle blank space. Fenced blocks stay byte for byte.

    Example: ``clean_statement("<p>Add.</p>\\n\\n\\n\\nAuthor: me")`` is ``"Add."``
    """
    pieces = _FENCE.split(text.replace("\r\n", "\n"))
    for place in range(0, len(pieces), 2):
        piece = _TAGS.sub("", _BREAKS.sub("\n", pieces[place]))
        piece = _SPACES.sub("\n", _CREDITS.sub("", piece))
        pieces[place] = _BLANK.sub("\n\n", piece)
    return "".join(pieces).strip()


def drop_reason(statement: str | None, about: dict[str, object]) -> tuple[DropReason, str] | None:
    """Return the reason to drop a problem with the words that decided; None where it stays.

    Args:
        about: ``interactive``, ``files``, ``figures``, ``function`` and ``checker`` of its `JUDGING` row;
            ``solutions`` and ``tests`` are counts of what can be used; ``not_usable`` are words of the source, or None.
    """
    text = statement or ""
    letters = sum(letter.isalpha() for letter in text)
    if letters < LEAST_LETTERS:
        return DropReason.MISSING_STATEMENT, f"{letters} letters"
    match = _INTERACTIVE.search(text)
    if about["interactive"] or match:
        return DropReason.INTERACTIVE, match[0] if match else "the source says so"
    match = _FILES.search(text)
    if about["files"] or match:
        return DropReason.NEEDS_FILES, match[0] if match else "the source names files"
    if about["function"]:
        return DropReason.ASKS_FUNCTION, f"the function {about['function']}"
    match = _FIGURE.search(text) or _IMAGE_MARK.search(text)
    if about["figures"] or match:
        return DropReason.MISSING_FIGURE, match[0] if match else "the source says that it shows pictures"
    if about["not_usable"]:
        return DropReason.SEVERAL_OUTPUTS, str(about["not_usable"])
    if not about["solutions"]:
        return DropReason.NO_SOLUTION, "no solution in Python or C++ that is not known to be wrong"
    if not about["tests"]:
        return DropReason.TOO_FEW_TESTS, "no test"
    words = says_any(text)
    if words is not None and not about["checker"]:
        return DropReason.SEVERAL_OUTPUTS, words
    return None


def filter_programs(
    problems: pl.DataFrame, tests: pl.DataFrame, solutions: pl.DataFrame, judging: pl.DataFrame
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return kept rows (`PROBLEM`, statements cleaned, the raw one beside) and dropped ones (`DROPPED`), in order.

    Args:
        judging: `JUDGING`, perhaps with a text column ``not_usable``.
    """
    usable = solutions.filter(pl.col("right").fill_null(True))
    counts = {"solutions": dict(usable.group_by("problem").len().iter_rows())}
    counts["tests"] = dict(tests.group_by("problem").len().iter_rows())
    beside = {row["problem"]: row for row in judging.iter_rows(named=True)}
    reasons: list[str | None] = []
    evidence: list[str | None] = []
    cleaned: list[str | None] = []
    for name, raw in problems.select("id", "statement").iter_rows():
        statement = clean_statement(raw) if raw is not None else None
        about = {"not_usable": None, **beside[name]} | {key: count.get(name, 0) for key, count in counts.items()}
        drop = drop_reason(raw, about)
        reasons.append(drop[0].value if drop else None)
        evidence.append(drop[1] if drop else None)
        cleaned.append(statement)
    frame = problems.with_columns(
        pl.lit(STAGE).alias("stage"),
        pl.Series("reason", reasons, pl.String),
        pl.Series("evidence", evidence, pl.String),
        pl.Series("cleaned", cleaned, pl.String),
    )
    dropped = frame.filter(pl.col("reason").is_not_null()).select(DROPPED.names())
    changed = pl.col("cleaned") != pl.col("statement")
    kept = frame.filter(pl.col("reason").is_null()).with_columns(
        pl.when(changed).then("statement").otherwise("raw_statement").alias("raw_statement"),
        pl.col("cleaned").alias("statement"),
    )
    return kept.select(problems.columns), dropped


def says_any(statement: str) -> str | None:
    """Return the words by which a statement allows more than one output; None where it does not, or says which one."""
    for match in _ANY_OUTPUT.finditer(statement):
        end = re.search(r"[.\n](?:\s|$)", statement[match.end() :])
        sentence = match[0] + statement[match.end() : match.end() + (end.start() if end else 200)]
        follows = re.search(r"\bany\b", sentence, re.IGNORECASE)
        if follows is not None or not _SETTLED.search(sentence):
            return " ".join(sentence.split())[:120]
    return None
