"""What a statement demands of inputs in words, as far as it tells how careful test generation must be.

Numbers that it names are in `limits`. A promise in words that no relation (`relations`) can express ("no two ships
touch") makes inputs that nobody checks unsafe.
"""

from __future__ import annotations

import re
import string
from collections.abc import Sequence

_INPUT = re.compile(r"^\W*(?:the )?input(?: format| specification)?\W*$", re.IGNORECASE | re.MULTILINE)
_END = re.compile(
    r"^\W*(?:the )?(?:output(?: format| specification)?|interaction|examples?|sample.*|notes?|scoring)\W*$",
    re.IGNORECASE | re.MULTILINE,
)
_SENTENCE = re.compile(r"(?<=[.;:!?])(?<!\bi\.e\.)(?<!\be\.g\.)\s+|\n\s*\n|\n\s*-\s")
_GUARANTEE = re.compile(
    r"(?<!\bnot )(?<!\bto )\bguarantee[ds]?\b|\b(?:may|can) (?:safely )?assume\b|\bit is known\b"
    r"|\bcontains? at least\b(?! \$?\d[^a-z]*\band at most\b)",
    re.IGNORECASE,
)
_PROMISE = re.compile(
    r"\b(?:no (?:two|three|pair|other|more than one)|none of|never|such that|exactly (?:one|once|two)|at most one"
    r"|always|at least one|each other|(?:not|\w+n't) (?:touch|overlap|intersect|cross|coincide|collide)|collinear"
    r"|general position|a (?:simple|convex) polygon|strictly (?:inside|within|between)|lies? (?:\w+ )?(?:inside|within)"
    r"|on the boundary|alternat(?:e[sd]?|ing|ely)|(?:horizontal|vertical) (?:and|or) (?:vertical|horizontal))\b",
    re.IGNORECASE,
)
_SOLVABLE = re.compile(r"\b(?:solutions?|answers?|valid|feasible|exists?|possible|way to)\b", re.IGNORECASE)
"""Words of what a guarantee outside of the input's description says of inputs: that there is a solution."""
_ROBUST = re.compile(
    r"\b(?:same|un(?:changed|affected)|(?:not|n't|never) change|changes? by|differs? by)\b.{0,60}"
    r"\b(?:if|when|whenever)\b",
    re.IGNORECASE,
)
"""Words of a guarantee, wherever it stands, that numbers a little different would give the same answer."""
_HOLDS = re.compile(r"\b(?:contains?|has|have|holds?|includes?)\s+at least one\s+([^.,;:]+)", re.IGNORECASE)
_FURTHER = re.compile(r"\b(?:and|or|no|not|but|if|such that|exactly)\b", re.IGNORECASE)
"""Words of a further promise in the same sentence."""
_SIGNS = re.compile(
    r"\b(?:positive|non-?negative|natural numbers?)\b|(?<![\d.])0\s*(?:<(?!=)|\\lt(?![a-z]))", re.IGNORECASE
)
"""Words and formulas that say of numbers that they are positive, or not negative."""
_VOWELS = "aeiou"
_CLASSES = {
    "vowel": _VOWELS,
    "consonant": "".join(letter for letter in string.ascii_lowercase if letter not in _VOWELS),
    "digit": string.digits,
    "letter": string.ascii_lowercase,
}
_GRID_LETTERS = 6
"""A text of so many different signs at most is taken for a map, each of whose signs stands for one thing."""
_REFUSALS = {
    "",
    "-1",
    "impossible",
    "infeasible",
    "unsolvable",
    "none",
    "no solution",
    "error",
    "ambiguous",
    "nan",
    "-nan",
}
"""What programs print of an input that has no solution."""
_CHANGING = re.compile(r"\b(?:at (?:every|any|each) (?:moment|time|point)|at all times|result of)\b", re.IGNORECASE)
"""Words of promises on what becomes of an input, or how it came about."""
_EXPRESSED = re.compile(
    r"\b(?:distinct|different|unique|identical|twice|(?:more than|exactly|at most|only) once"
    r"|same (?:pair|location|place|position|point)"
    r"|connected|reach(?:able)?|every pair|sorted|increasing"
    r"|decreasing|ascending|descending|permutation|tree|odd|even|self-loops?|repeated|duplicates?|separated by"
    r"|possible to (?:walk|travel|get|go|reach|move)|leading \w+\b[^.;]{0,40}\bnon-?zero|leading zeros?)\b",
    re.IGNORECASE,
)
_TOLD = re.compile(
    r"\b(?:distinct|different|unique|same|twice|connected|reach(?:able)?|every pair|sorted|order|increasing|decreasing"
    r"|ascending|descending|permutation|tree|odd|even|multiple|divisible|self-loops?|repeated|duplicates?|sum"
    r"|lower-?case|upper-?case|letters?|integers?|decimals?|digits? after|solutions?|separated)\b",
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
    "nonzero": r"\bnon-?zero|leading|\\neq? ?0|≠ ?0",
    "size": r"\b(?:length|characters|letters|digits|long)\b[^.]{0,60}\b(?:least|most|exceed\w*|between|more|less"
    r"|smaller|larger|greater|longer|shorter|from|to)\b[^.]{0,30}\$[A-Za-z]\$"
    r"|\b(?:most|least|than|exceed\w*|exactly)\s+\$[A-Za-z]\$\s+(?:letters|characters|digits|symbols|signs)\b",
    "reaches": r"\bpossible to (?:reach|get|go|travel|walk|drive|move|come)\b|\b(?:can|always|surely) be reached\b"
    r"|\b(?:there (?:is|exists)|at least one)\b[^.;]{0,20}(?<!-)\b(?:path|route|way)\b[^.;]{0,30}\bfrom\b"
    r"|\breachable from\b",
    "border": r"\b(?:borders?|boundar\w+|perimeter|surround\w*|enclosed|outermost|edges? of)\b",
}
_BORDER = re.compile(_WORDS["border"], re.IGNORECASE)
_ALPHABET = re.compile(
    r"\b((?:[lL]ower|[uU]pper)-?\s?case)(?: (?:English|Latin|alphabetic|Roman))* (?:letters?|characters?|alphabet)\b"
    r"|\b(?:letters?|characters?)[^.;]{0,30}?[`'\"({]*\b([aA])[`'\")}]*\s*(?:-|--|–|to|through)\s*[`'\"({]*[zZ]\b"
)
_LETTERS = re.compile(
    r"\b(?:letters?|characters?|strings?|alphabet\w*|(?:lower|upper)-?\s?case|digits?|names?|symbols?|signs?|grid|map"
    r"|cells?|matrix|bits?|binary|words?)\b|['`\"]\S['`\"]",
    re.IGNORECASE,
)
_TOTAL = re.compile(
    r"\b(?:sum of (?:all |the )*(?:\$?[A-Za-z]\$? (?:over|across)|lengths?)|total (?:length|number))", re.IGNORECASE
)
_GREAT = re.compile(r"(?:(\d+)\s*(?:\\cdot|\\times|\*)\s*)?\b10\s*\^\s*\{?(\d)\}?")
_LONG = re.compile(r"\b\d{1,3}(?:(?:\\,|,|\{,\}|\s)?\d{3})+\b")
_ORDER_WORDS = re.compile(
    r"\b(?:before|after|larger|smaller|greater|less|fewer|exceeds?|increas\w+|decreas\w+|sorted|ascending|descending"
    r"|earlier|later|respectively|at most as|no more than|chronological\w*|starts?|ends?|begins?)\b"
    r"|\b(?:between|from)\b[^.;]{1,20}\b(?:and|to)\s+\$?[A-Za-z]\b(?!\w)",
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
    "reaches": "reaches",
    "compare": "compare",
    "beside": "compare",
    "parity": "parity",
    "nonzero": "nonzero",
    "size": "size",
    "border": "border",
}
"""The words without which a relation of that name is taken for an accident, where the statement says what is read."""

_UNSPOKEN = frozenset({"ends", "once", "balanced", "length", "among", "rows"})
"""Relations that go without saying. Rows that differ do so oftener than a statement says it."""


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

    What is guaranteed needs a word that a relation is for; a sentence that only sounds like a promise needs less. That
    a solution exists is often guaranteed where the output is described, as is that rounding does not change the answer.
    """
    part = input_section(statement)
    if part == statement and _INPUT.search(statement) is None:
        return []
    told = [sentence for sentence in _sentences(part) if _promises(sentence)]
    others = _sentences(statement.replace(part, "\n\n"))
    guaranteed = [one for one in others if _GUARANTEE.search(one)]
    robust = [one for one in guaranteed if _ROBUST.search(one)]
    solvable = [one for one in guaranteed if _SOLVABLE.search(one) and _EXPRESSED.search(one) is None]
    return told + [one for one in guaranteed if one in robust or one in solvable]


def _sentences(text: str) -> list[str]:
    """Return the sentences of a text, each on one line."""
    return [" ".join(sentence.split()) for sentence in _SENTENCE.split(text)]


def _promises(sentence: str) -> bool:
    if _GUARANTEE.search(sentence):
        parts = re.split(r",? and that ", sentence)
        if len(parts) > 1:
            return any(_promises(part if _GUARANTEE.search(part) else f"guaranteed {part}") for part in parts)
        robust = _CHANGING.search(sentence) is not None or _ROBUST.search(sentence) is not None
        return robust or _EXPRESSED.search(sentence) is None
    restated = sentence.lower().startswith("note that")
    return not restated and _PROMISE.search(sentence) is not None and _TOLD.search(sentence) is None


def stated_alphabet(statement: str) -> str:
    """Return the letters of the cases that the words of a statement's input may be written in; empty where it does not
    say so, or lists single letters.
    """
    letters = ""
    for match in _ALPHABET.finditer(input_section(statement)):
        sign = (match[1] or match[2])[0]
        letters += string.ascii_lowercase if sign in "lLa" else string.ascii_uppercase
    return letters


def stated_total(text: str) -> int | None:
    """Return the greatest total of counts or lengths that a text allows, None where it names none.

    Example: of "the sum of $n$ over all test cases is at most $10^6$" it is 1000000.
    """
    totals = []
    for sentence in _SENTENCE.split(text):
        if _TOTAL.search(sentence):
            totals += [int(match[1] or 1) * 10 ** int(match[2]) for match in _GREAT.finditer(sentence)]
            totals += [int(re.sub(r"\D", "", match[0])) for match in _LONG.finditer(sentence)]
    return min(totals, default=None)


def speaks_of_signs(statement: str) -> bool:
    """Return whether the words on the input say of numbers that they are positive, or not negative."""
    return _SIGNS.search(input_section(statement)) is not None


def speaks_of_letters(part: str) -> bool:
    """Return whether a description of an input says what words are made of: not so of `OCT` and `DEC`."""
    return _LETTERS.search(part) is not None


def speaks_of_border(sentence: str) -> bool:
    """Return whether a sentence may say what stands on the border of a map."""
    return _BORDER.search(sentence) is not None


def in_order(statement: str) -> bool:
    """Return whether the words on the input may mean that numbers are in some order."""
    return _ORDER_WORDS.search(input_section(statement)) is not None


def spoken_of(statement: str, *, told: bool = True) -> frozenset[str]:
    """Return the relations, by name, that a statement may speak of; those that it cannot mean are not among them.

    ``told``: it says what is read. Else all are that inputs may have, but for odd and even numbers, edges and lengths,
    of which it says nothing.
    """
    part = input_section(statement)
    spoken = {kind for kind, words in _WORDS.items() if re.search(words, part, re.IGNORECASE)}
    shown = set() if told else _KINDS.keys() - {"parity", "edges", "size", "reaches"}
    return _UNSPOKEN | shown | {name for name, kind in _KINDS.items() if kind in spoken}


def required_letters(sentence: str, inputs: Sequence[str]) -> tuple[frozenset[str], ...]:
    """Return sets of letters of each of which every input must hold one, where that keeps the promise of a sentence
    that inputs contain at least one of something; empty where it says no such thing, or not of what.

    A class of letters is known by its name ("vowel"). Of maps, whose cells are single signs, all signs that every given
    input holds are required, whichever is meant.
    """
    match = _HOLDS.search(sentence)
    if match is None or _FURTHER.search(sentence[: match.start()] + sentence[match.start(1) :]):
        return ()
    words = match[1].lower()
    for name, letters in _CLASSES.items():
        if re.search(rf"\b{name}s?\b", words):
            upper = "upper" in words or ("lower" not in words and any(map(str.isupper, "".join(inputs))))
            both = frozenset(letters + letters.upper()) if upper and "upper" not in words else frozenset(letters)
            return (frozenset(letters.upper()) if "upper" in words else both,)
    cells = [set(re.sub(r"-?\d+|\s", "", text)) for text in inputs]
    if not cells or not all(cells) or len(set().union(*cells)) > _GRID_LETTERS:
        return ()
    return tuple(frozenset(sign) for sign in sorted(set.intersection(*cells)))


def is_unforeseen_refusal(output: str, statement: str, outputs: Sequence[str]) -> bool:
    """Return whether an output says that there is no solution, of which neither the statement nor a given output
    speaks: solutions may say so of an input that the statement rules out.

    Example: ``is_unforeseen_refusal("Impossible\\n", "A solution always exists.", ["3 4\\n"])`` is true
    """
    said = output.strip().lower()
    if said not in _REFUSALS:
        return False
    if not said:
        return all(given.strip() for given in outputs)
    word = re.compile(rf"(?<![\w-]){re.escape(said)}(?!\w)")
    return not any(word.search(text.lower()) for text in (statement, *outputs))
