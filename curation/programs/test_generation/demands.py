"""What a statement demands of inputs in words, as far as it tells how careful test generation must be.

Numbers that it names are in `limits`. A promise in words that no relation (`relations`) can express ("no two ships
touch") makes inputs that nobody checks unsafe.
"""

from __future__ import annotations

import re

_INPUT = re.compile(r"^\W*(?:the )?input(?: format| specification)?\W*$", re.IGNORECASE | re.MULTILINE)
_END = re.compile(
    r"^\W*(?:the )?(?:output(?: format| specification)?|interaction|examples?|sample.*|notes?|scoring)\W*$",
    re.IGNORECASE | re.MULTILINE,
)
_SENTENCE = re.compile(r"(?<=[.;:!?])\s+|\n\s*\n|\n\s*-\s")
_GUARANTEE = re.compile(
    r"\b(?:guarantee[ds]?|(?:may|can) (?:safely )?assume|it is known|contains? at least)\b", re.IGNORECASE
)
_PROMISE = re.compile(
    r"\b(?:no (?:two|three|pair|other|more than one)|never|such that|exactly (?:one|once|two)|at most one|at least one"
    r"|each other)\b",
    re.IGNORECASE,
)
_CHANGING = re.compile(
    r"\b(?:at (?:every|any|each) (?:moment|time|point)|at all times|always|result of)\b", re.IGNORECASE
)
"""Words of promises on what becomes of an input, or how it came about."""
_EXPRESSED = re.compile(
    r"\b(?:distinct|different|unique|twice|more than once|same (?:pair|location|place|position|point)"
    r"|connected|reach(?:able)?|every pair|sorted|increasing"
    r"|decreasing|ascending|descending|permutation|tree|odd|even|self-loops?|repeated|duplicates?"
    r"|possible to (?:walk|travel|get|go|reach|move))\b",
    re.IGNORECASE,
)
_TOLD = re.compile(
    r"\b(?:distinct|different|unique|same|twice|connected|reach(?:able)?|every pair|sorted|order|increasing|decreasing"
    r"|ascending|descending|permutation|tree|odd|even|multiple|divisible|self-loops?|repeated|duplicates?|sum"
    r"|lower-?case|upper-?case|letters?|integers?|decimals?|digits? after|solutions?|separated)\b|[<>≤≥≠]"
    r"|\\leq?|\\geq?|\\neq?|\\ne\b",
    re.IGNORECASE,
)
_NAME = r"[A-Za-z](?:_\{?\w+\}?)?"
_ORDERS = r"(?:\\leq?(?:slant)?|\\lt|\\neq?|\\geq?|\\gt|<=?|>=?|≤|≥|≠)"
_WORDS = {
    "ordered": r"sort|order|increas|decreas|ascend|descend|monoton|chronolog|from (?:left|smallest|largest|lowest)",
    "different": r"distinct|different|unique|twice|once|duplicate|same|no two|pairwise|repeat|permutation|simple"
    r"|self|coincid|another|\\neq?|≠|overlap|disjoint|own",
    "sum": r"\bsum|total|add up|\\sum",
    "connected": r"connected|reach|tree|travel|every pair|each pair|any two|path|any other",
    "compare": rf"{_NAME}\$?\s*{_ORDERS}\s*\$?{_NAME}|\bindex|indices|label|number(?:ed|s) (?:from|between)|exceed"
    r"|larger|smaller|greater|less|fewer|at most \$?[a-z]\b|\bto \$?[a-z]\b|before|after|start|end|\bnodes?\b|vert",
    "parity": r"\b(?:odd|even|parity|multiples? of|divisible)\b",
}
_ORDER_WORDS = re.compile(
    r"\b(?:before|after|larger|smaller|greater|less|fewer|exceeds?|increas\w+|decreas\w+|sorted|ascending|descending"
    r"|earlier|later|respectively|at most as|no more than|chronological\w*|starts?|ends?|begins?)\b",
    re.IGNORECASE,
)
_KINDS = {
    "ordered": "ordered",
    "different": "different",
    "own_place": "different",
    "rows": "different",
    "edges": "different",
    "sum": "sum",
    "connected": "connected",
    "compare": "compare",
    "beside": "compare",
    "parity": "parity",
}
"""The words without which a relation of that name is taken for an accident."""


def input_section(statement: str) -> str:
    """Return the part of a statement that describes its input, the whole statement where none can be told."""
    begin = _INPUT.search(statement)
    if begin is None:
        return statement
    end = _END.search(statement, begin.end())
    part = statement[begin.end() : end.start() if end is not None else len(statement)].strip()
    return part or statement


def promises(statement: str) -> list[str]:
    """Return the sentences on the input that promise what no relation expresses.

    What is guaranteed needs a word that a relation is for; a sentence that only sounds like a promise needs less.
    """
    part = input_section(statement)
    if part == statement and _INPUT.search(statement) is None:
        return []
    return [sentence for sentence in map(str.strip, _SENTENCE.split(part)) if _promises(sentence)]


def _promises(sentence: str) -> bool:
    if _GUARANTEE.search(sentence):
        return _CHANGING.search(sentence) is not None or _EXPRESSED.search(sentence) is None
    return _PROMISE.search(sentence) is not None and _TOLD.search(sentence) is None


def in_order(statement: str) -> bool:
    """Return whether the words on the input may mean that numbers are in some order."""
    return _ORDER_WORDS.search(input_section(statement)) is not None


def spoken_of(statement: str) -> frozenset[str]:
    """Return the relations, by name, that a statement may speak of; those that it cannot mean are not among them."""
    part = input_section(statement)
    spoken = {kind for kind, words in _WORDS.items() if re.search(words, part, re.IGNORECASE)}
    return frozenset(name for name, kind in _KINDS.items() if kind in spoken) | {"ends", "once", "balanced", "length"}
