"""Renders texts: formulas as MathML of listed elements and attributes, and differences."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from functools import lru_cache
from xml.etree import ElementTree

from markupsafe import Markup, escape
from math_core import LatexError, LatexToMathML

from curation.languages.stripping import formula_segments

LONGEST = 4000
"""Characters; longer formulas are shown as text."""

_ELEMENTS = frozenset(
    "math mrow mi mn mo ms mspace mtext menclose merror mfrac mpadded mphantom mroot msqrt mstyle mmultiscripts mover "
    "mprescripts msub msubsup msup munder munderover mtable mtd mtr none".split()
)
_ATTRIBUTES = frozenset(
    "accent accentunder columnalign columnspacing depth dir display displaystyle fence form height largeop "
    "linethickness lspace mathvariant maxsize minsize movablelimits notation rowspacing rspace scriptlevel separator "
    "stretchy symmetric voffset width columnlines rowlines".split()
)
_DISPLAY = re.compile(
    r"\$\$(.+?)\$\$|\\\[(.+?)\\\]|\\\((.+?)\\\)|(\\begin\s*\{(equation|align|aligned|gather|array|cases|[bpvBV]?matrix)"
    r"\*?\}.*?\\end\s*\{\5\*?\})",
    re.DOTALL,
)
_BOXED = re.compile(r"(\\boxed\s*\{(?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*\})")
_BARE = re.compile(r"\\[A-Za-z]+|[\^_]\{?\w")
_TOKENS = re.compile(r"\s+|\w+|[^\w\s]")
_RENDERER = LatexToMathML(macros={"mbox": r"\text{#1}", "hbox": r"\text{#1}"}, fancy_error=False)
_FENCE = re.compile(r"(```.*?(?:```|\Z)|~~~.*?(?:~~~|\Z))", re.DOTALL)


def pieces(text: str) -> Iterator[tuple[str, str]]:
    """Yield pieces of a text: ``text``, ``inline`` or ``display`` formulas; code has none."""
    for number, block in enumerate(_FENCE.split(text)):
        if number % 2:
            yield "text", block
            continue
        end = 0
        for match in _DISPLAY.finditer(block):
            yield from _inline(block[end : match.start()])
            source = next(group for group in (match[1], match[2], match[3], match[4]) if group is not None)
            yield "inline" if match[3] is not None else "display", source
            end = match.end()
        yield from _inline(block[end:])


def _inline(text: str) -> Iterator[tuple[str, str]]:
    for segment, is_formula in formula_segments(text):
        if is_formula:
            yield "inline", segment
            continue
        for number, part in enumerate(_BOXED.split(segment)):
            if part:
                yield ("inline" if number % 2 else "text"), part


def rendered(text: str | None) -> Markup:
    """Return a text with its formulas as MathML."""
    return Markup("").join(_shown(kind, segment) for kind, segment in pieces(text or ""))


def _shown(kind: str, segment: str) -> Markup:
    made = formula(segment, display=kind == "display") if kind != "text" else None
    dollars = {"text": "", "inline": "$", "display": "$$"}[kind]
    return made if made is not None else escape(f"{dollars}{segment}{dollars}")


def rendered_answer(answer: str | None) -> Markup:
    """Render a final answer, also a formula without dollars."""
    if answer is None:
        return Markup("")
    if "$" not in answer and _BARE.search(answer) and len(answer) < LONGEST:
        made = formula(answer)
        if made is not None:
            return made
    return rendered(answer)


@lru_cache(maxsize=8192)
def formula(source: str, *, display: bool = False) -> Markup | None:
    """Return a LaTeX formula's MathML, or None."""
    if len(source) > LONGEST:
        return None
    try:
        made = _RENDERER.convert_with_local_state(source, displaystyle=display)
    except LatexError:
        return None
    return _clean(made)


def _clean(made: str) -> Markup | None:
    """Remove unlisted attributes; return None for unlisted elements."""
    try:
        root = ElementTree.fromstring(made)
    except ElementTree.ParseError:
        return None
    for element in root.iter():
        if element.tag not in _ELEMENTS:
            return None
        for name in [name for name in element.attrib if name not in _ATTRIBUTES]:
            del element.attrib[name]
    return Markup(ElementTree.tostring(root, encoding="unicode", short_empty_elements=False))


def differences(before: str | None, after: str | None) -> tuple[Markup, Markup]:
    """Return both texts, with deletions and insertions marked."""
    old, new = _TOKENS.findall(before or ""), _TOKENS.findall(after or "")
    sides: tuple[list[Markup], list[Markup]] = [], []
    for kind, i, j, k, n in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        for side, tokens, tag in ((sides[0], old[i:j], "del"), (sides[1], new[k:n], "ins")):
            text = escape("".join(tokens))
            side.append(text if kind == "equal" or not text else Markup(f"<{tag}>{{}}</{tag}>").format(text))
    return Markup("").join(sides[0]), Markup("").join(sides[1])
