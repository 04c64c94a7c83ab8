"""What a statement says of how many lines, and how many values on a line, stand where: ``the next $m$ lines``, ``one
line with $n$ integers``. Of the forms that read the given inputs only those that count the same are taken.

Small samples read in several ways: two rows of two numbers are one block of two lines, or two lists of two.

Invariants: pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from curation.programs.test_generation.demands import input_section
from curation.programs.test_generation.grammar import (
    FIXED,
    ArrayNode,
    LengthReference,
    LinesNode,
    Node,
    RepeatNode,
    RowNode,
    blocks_of,
    columns_of,
)
from curation.programs.test_generation.stated_rules import NamedColumns

_LINES = re.compile(
    r"\b(?:next|following|followed by|then|further|are)\s+\$\s*([A-Za-z])\s*\$\s+(?:(?:more|further|other)\s+)?lines\b"
    r"|^\W*\$\s*([A-Za-z])\s*\$\s+(?:(?:more|further|other)\s+)?lines\b",
    re.IGNORECASE | re.MULTILINE,
)
"""Names of how many lines follow: ``Each of the next $m$ lines``."""
_VALUES = re.compile(
    r"\blines?\s+(?:then\s+)?(?:contain(?:s|ing)?|with|has|have|of|consists? of|consisting of|holds?|gives?|lists?)\s+"
    r"(?:(?:the|exactly|a list of|a sequence of)\s+)*\$\s*([A-Za-z])\s*\$\s+"
    r"(?:[\w-]+[ ,]+){0,3}?(?:integers?|numbers?|values|reals?|words|names|strings|decimals)\b",
    re.IGNORECASE,
)
"""Names of how many values stand on a line: ``the next line contains the $n$ integers``."""
_LISTED = re.compile(
    r"(?<![A-Za-z\\])([A-Za-z])_\{?\w+\}?\$?\s*,?\s*\$?\s*(?:\\[lc]?dots|…|\.\.\.)\s*\$?\s*,?\s*\$?\s*\1_\{?([A-Za-z])\b"
)
"""A name that dots list, and how often: ``a_1, …, a_n``."""
_ONE_LESS = re.compile(r"[A-Za-z}]\s*[-−–]\s*1(?![\d.])")
_ONE_MORE = re.compile(r"[A-Za-z}]\s*\+\s*1(?![\d.])|\b1\s*\+\s*[A-Za-z]")


def counted_values(statement: str) -> frozenset[str]:
    """Return the names of how many values stand on a line.

    Example: of ``The next line contains the $N$ integers $a_1, a_2$`` it is ``{"N"}``
    """
    return frozenset(match[1] for match in _VALUES.finditer(input_section(statement)))


def counts_as_stated(nodes: Sequence[Node], named: NamedColumns, statement: str) -> bool:
    """Return whether the numbers of which the statement says that so many lines follow, or that so many values stand
    on a line, count such of the form.
    """
    lines = {node.count.column for node in nodes if isinstance(node, RepeatNode)}
    lines |= {block.count.column for block in blocks_of(nodes) if block.count is not None}
    wanted = {match[1] or match[2] for match in _LINES.finditer(input_section(statement))} & named.columns.keys()
    values = {count.column for count in _widths(nodes)}
    listed = counted_values(statement) & named.columns.keys()
    if not ({named.columns[name] for name in wanted} <= lines and {named.columns[name] for name in listed} <= values):
        return False
    counted = {column: counts for columns, counts in _counted(nodes) for column in columns}
    return all(
        named.columns[count] in counted.get(named.columns[name], ())
        for name, count in _LISTED.findall(input_section(statement))
        if {name, count} <= named.columns.keys()
    )


def adds_unsaid(nodes: Sequence[Node], statement: str) -> bool:
    """Return whether the form counts one more or one less than a number, of which the statement does not speak."""
    part = input_section(statement)
    offsets = {count.plus for count in _counts(nodes) if count.column != FIXED}
    return (-1 in offsets and _ONE_LESS.search(part) is None) or (1 in offsets and _ONE_MORE.search(part) is None)


def _counted(nodes: Sequence[Node], around: frozenset[int] = frozenset()) -> Iterator[tuple[range, frozenset[int]]]:
    """Yield columns with those that say how often one of their values stands there."""
    for node in nodes:
        if isinstance(node, RepeatNode):
            yield from _counted(node.nodes, around | {node.count.column})
            continue
        counts = [getattr(node, "count", None), node.width if isinstance(node, LinesNode) else None]
        own = {count.column for count in counts if isinstance(count, LengthReference)}
        yield range(node.first, node.first + columns_of(node)), around | own


def _widths(nodes: Sequence[Node]) -> Iterator[LengthReference]:
    for node in nodes:
        if isinstance(node, RepeatNode):
            yield from _widths(node.nodes)
        elif isinstance(node, ArrayNode | RowNode) and node.count is not None:
            yield node.count
        elif isinstance(node, LinesNode) and isinstance(node.width, LengthReference):
            yield node.width
        elif isinstance(node, LinesNode) and node.width == 1 and node.count is not None:
            yield node.count  # a value on each line of its own


def _counts(nodes: Sequence[Node]) -> Iterator[LengthReference]:
    yield from _widths(nodes)
    for node in nodes:
        if isinstance(node, RepeatNode):
            yield node.count
            yield from _counts(node.nodes)
        elif isinstance(node, LinesNode) and node.count is not None:
            yield node.count
