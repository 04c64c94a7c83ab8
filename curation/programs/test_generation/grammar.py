"""The form of a problem's inputs, found from a few of them: which lines stand where, and which number says how many.

A form is a straight sequence of nodes that reads every input seen from its first line to its last one:

    LineNode     one line of a fixed number of tokens; its whole numbers have names that later counts refer to
    ArrayNode    one line of as many tokens as a number says (or of any number of them)
    RowNode      one line of a fixed number of tokens and then as many as the last of them says: ``k`` and ``k`` names
    LinesNode    as many lines as a number says (or all that are left), each of a fixed or a named number of tokens
    RepeatNode   a sequence of nodes as many times as a number says

Counts are a number read before, or one more or one less. Of the forms that read all inputs the one that guesses least
(`_cost`) is taken: it is still a guess, the better the more inputs were seen, and nothing here knows the problem.

Invariants: pure; the search is bounded (`_MOST_STEPS`), and None says that no form was found.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from curation.programs.test_generation.shapes import Line, is_whole

_MOST_STEPS = 1_500
_MOST_NODES = 9
_WIDEST_ROW = 8
_OFFSETS = (0, -1, 1)
_LEAST_FIXED = 3
_WIDEST_HEAD = 2
"""Tokens at most before those that a line counts itself."""

Env = dict[int, int]
"""Named numbers: the column's name → the value read last."""


@dataclass(frozen=True, slots=True)
class SeenInputs:
    """Tokens of one column that stand together (one of a row, all of an array or of lines), and the numbers read
    before."""

    column: int
    tokens: list[str]
    env: Env


FIXED = -1
"""The column of counts that are the same in every input."""


@dataclass(frozen=True, slots=True)
class LengthReference:
    """A count: the number of that column, plus ``plus``; of the column `FIXED` it is ``plus``."""

    column: int
    plus: int = 0

    def value(self, env: Env) -> int:
        """Return the count under what was read so far; -1 where the column was not."""
        if self.column == FIXED:
            return self.plus
        return env[self.column] + self.plus if self.column in env else -1


@dataclass(frozen=True, slots=True)
class LineNode:
    """One line of ``width`` tokens, whose columns are ``first``, ``first + 1`` …"""

    first: int
    width: int


@dataclass(frozen=True, slots=True)
class ArrayNode:
    """One line of ``count`` tokens, all of the column ``first``."""

    first: int
    count: LengthReference | None


@dataclass(frozen=True, slots=True)
class RowNode:
    """One line of ``width`` tokens, as in a `LineNode`, and then ``count`` of the column behind these."""

    first: int
    width: int
    count: LengthReference


@dataclass(frozen=True, slots=True)
class LinesNode:
    """``count`` lines of ``width`` tokens: as many columns from ``first`` on, or one column where a `LengthReference`
    gives it.
    """

    first: int
    count: LengthReference | None
    width: int | LengthReference


@dataclass(frozen=True, slots=True)
class RepeatNode:
    """The nodes, ``count`` times."""

    nodes: tuple[Node, ...]
    count: LengthReference


Node = LineNode | ArrayNode | RowNode | LinesNode | RepeatNode


def infer_grammar(inputs: Sequence[Sequence[Line]]) -> tuple[Node, ...] | None:
    """Return the form of some inputs, or None.

    Example: ``infer_grammar([[["2"], ["5", "6"]], [["1"], ["7"]]])`` is ``(LineNode(0, 1),
    ArrayNode(1, LengthReference(0, 0)))``
    """
    forms = infer_grammars(inputs, 0.0)
    return forms[0] if forms else None


def infer_grammars(inputs: Sequence[Sequence[Line]], slack: float) -> list[tuple[Node, ...]]:
    """Return the forms that read all inputs, cheapest first, as far as they cost at most ``slack`` more than that."""
    if not inputs or not all(inputs):
        return []
    search = _Search(slack)
    search.go([_State(lines, 0, {}) for lines in inputs], (), 0, 0.0)
    forms = sorted(search.forms, key=lambda form: form[0])
    return [nodes for cost, nodes in forms if cost <= search.cost + slack]


@dataclass(slots=True)
class _Search:
    """A depth-first search for the cheapest form; branches that cannot become cheaper are cut."""

    slack: float
    steps: int = _MOST_STEPS
    forms: list[tuple[float, tuple[Node, ...]]] = field(default_factory=list)
    cost: float = float("inf")

    def go(self, states: list[_State], nodes: tuple[Node, ...], first: int, cost: float) -> None:
        """Search on behind ``nodes``, which cost ``cost``; the next column is ``first``."""
        if cost >= self.cost + self.slack:
            return
        if all(state.remaining == 0 for state in states):
            self.forms.append((cost, nodes))
            self.cost = min(self.cost, cost)
            return
        if len(nodes) >= _MOST_NODES:
            return
        used = {count for node in nodes if (count := getattr(node, "count", None)) is not None}
        for node in _nodes(states, first):
            self.steps -= 1
            if self.steps < 0:
                return
            after = [moved for state in states if (moved := _state_after(node, state)) is not None]
            if len(after) == len(states):
                again = 0.25 if getattr(node, "count", None) in used else 0.0
                self.go(after, (*nodes, node), first + columns_of(node), cost + _cost(node) + again)


def _cost(node: Node) -> float:
    """Return how much of a guess a node is."""
    if isinstance(node, LineNode):
        return 2.0
    if isinstance(node, RepeatNode):
        if isinstance(node.nodes[0], RowNode):  # rows that differ in length, each as long as it says
            return 1.75
        return 2.0 + sum(map(_cost, node.nodes))
    if isinstance(node, RowNode):
        return 2.25
    if node.count is None:
        return 6.0
    width = node.width if isinstance(node, LinesNode) else None
    if node.count.column == FIXED:
        return 4.5
    return 1.0 + abs(node.count.plus) + (0.5 + abs(width.plus) if isinstance(width, LengthReference) else 0.0)


@dataclass(frozen=True, slots=True)
class _State:
    """One input read up to the line ``at``."""

    lines: Sequence[Line]
    at: int
    env: Env

    @property
    def remaining(self) -> int:
        return len(self.lines) - self.at


def columns_of(node: Node) -> int:
    """Return how many columns a node names."""
    if isinstance(node, RepeatNode):
        return sum(map(columns_of, node.nodes))
    if isinstance(node, ArrayNode) or isinstance(node.width, LengthReference):
        return 1
    return node.width + isinstance(node, RowNode)


def _nodes(states: list[_State], first: int) -> Iterator[Node]:
    """Yield the nodes that may come next, likelier ones first."""
    refs = [LengthReference(column, plus) for plus in _OFFSETS for column in states[0].env]
    counted = [ref for ref in refs if _may_count(ref, states)]
    for ref in counted:
        for width in _widths(ref, refs, states):
            yield LinesNode(first, ref, width)
    if any(state.remaining == 0 for state in states):
        return
    yield from _fixed_blocks(states, first)
    heads = [state.lines[state.at] for state in states]
    sizes = {len(line) for line in heads}
    for ref in counted:
        if all(ref.value(state.env) == len(line) for state, line in zip(states, heads, strict=True)):
            yield ArrayNode(first, ref)
    for ref in counted:
        if ref.plus == 0:
            yield from (RepeatNode(nodes, ref) for nodes in _inner(states[0], first))
    for row in _rows(states[0], first):
        if all(_state_after(row, state) is not None for state in states):
            yield row
    if len(sizes) == 1 and 0 < (size := sizes.pop()) <= _WIDEST_ROW:
        yield LineNode(first, size)
    else:
        yield ArrayNode(first, None)
    widths = {len(line) for state in states for line in state.lines[state.at :]}
    if len(widths) == 1 and 0 < (wide := widths.pop()) <= _WIDEST_ROW:
        yield LinesNode(first, None, wide)


def _fixed_blocks(states: list[_State], first: int) -> Iterator[Node]:
    """Yield the block of as many lines of words in every input as have the width of the next one: of three or more."""
    runs = set()
    for state in states:
        widths = [len(line) for line in state.lines[state.at :]]
        if any(map(is_whole, state.lines[state.at])):
            return
        runs.add((next((i for i, width in enumerate(widths) if width != widths[0]), len(widths)), widths[0]))
    if len(runs) == 1 and len(states) > 1:
        run, width = runs.pop()
        if run >= _LEAST_FIXED and 0 < width <= _WIDEST_ROW:
            yield LinesNode(first, LengthReference(FIXED, run), width)


def _may_count(ref: LengthReference, states: list[_State]) -> bool:
    """Return whether a number may count something here: it is never negative, and not always so small that it fits by
    accident."""
    values = [ref.value(state.env) for state in states]
    least = 2 if ref.plus == 0 else 3
    return min(values) >= 0 and (max(values) >= least or len(set(values)) > 1)


def _widths(
    count: LengthReference, refs: Sequence[LengthReference], states: list[_State]
) -> Iterator[int | LengthReference]:
    """Yield the numbers of tokens that the next ``count`` lines may be said to have."""
    blocks = [state.lines[state.at : state.at + count.value(state.env)] for state in states]
    if any(len(block) < count.value(state.env) for block, state in zip(blocks, states, strict=True)):
        return
    sizes = {len(line) for block in blocks for line in block}
    named = [
        ref
        for ref in refs
        if all(len(line) == ref.value(state.env) for block, state in zip(blocks, states, strict=True) for line in block)
    ]
    if len(sizes) == 1 and (size := min(sizes)) > 0:
        if size > 3 and named:
            yield named[0]
        if size <= _WIDEST_ROW:
            yield size
    elif sizes and min(sizes) > 0:
        yield from named[:1]


def _rows(state: _State, first: int) -> Iterator[RowNode]:
    """Yield the ways to read the next line as a head and so many tokens as its last number says."""
    line = state.lines[state.at]
    for width in range(1, min(_WIDEST_HEAD, len(line)) + 1):
        if is_whole(line[width - 1]) and int(line[width - 1]) == len(line) - width:
            yield RowNode(first, width, LengthReference(first + width - 1))


def _inner(state: _State, first: int) -> Iterator[tuple[Node, ...]]:
    """Yield sequences that one of several cases may consist of: a row, then up to two nodes that its numbers count."""
    yield from ((row,) for row in _rows(state, first))
    width = len(state.lines[state.at])
    if not 0 < width <= _WIDEST_ROW:
        return
    row = LineNode(first, width)
    after = _state_after(row, state)
    if after is None:
        return
    for nodes in _counted(after, first + width, set(range(first, first + width)), 2):
        yield (row, *nodes)


def _counted(state: _State, first: int, own: set[int], most: int) -> Iterator[tuple[Node, ...]]:
    if most and state.remaining:
        width = len(state.lines[state.at])
        for plus in _OFFSETS[:2]:
            for column in own & set(state.env):
                ref = LengthReference(column, plus)
                choices: list[Node] = [ArrayNode(first, ref)] if ref.value(state.env) == width else []
                if 0 < width <= _WIDEST_ROW and ref.value(state.env) > 0:
                    choices.append(LinesNode(first, ref, width))
                for node in choices:
                    after = _state_after(node, state)
                    if after is not None:
                        for rest in _counted(after, first + columns_of(node), own, most - 1):
                            yield (node, *rest)
    yield ()


def _state_after(node: Node, state: _State) -> _State | None:
    """Return the state after a node, None where it does not fit."""
    end = read_node(node, state.lines, state.at, env := dict(state.env), None)
    return None if end is None else _State(state.lines, end, env)


def read_node(node: Node, lines: Sequence[Line], at: int, env: Env, observed: list[SeenInputs] | None) -> int | None:
    """Return the line behind a node, None where it does not fit; named numbers go to ``env``.

    ``observed`` takes the tokens of every column in it.
    """
    if isinstance(node, RepeatNode):
        for _ in range(max(0, node.count.value(env))):
            for inner in node.nodes:
                after = read_node(inner, lines, at, env, observed)
                if after is None:
                    return None
                at = after
        return at
    if isinstance(node, LinesNode):
        return _read_lines(node, lines, at, env, observed)
    if at >= len(lines):
        return None
    line = lines[at]
    if isinstance(node, RowNode):
        head = LineNode(node.first, node.width)
        if read_node(head, [line[: node.width]], 0, env, observed) is None:
            return None
        rest = ArrayNode(node.first + node.width, node.count)
        return None if read_node(rest, [line[node.width :]], 0, env, observed) is None else at + 1
    if isinstance(node, ArrayNode):
        if node.count is not None and len(line) != node.count.value(env):
            return None
        if observed is not None:
            observed.append(SeenInputs(node.first, list(line), dict(env)))
        return at + 1
    if len(line) != node.width:
        return None
    for column, token in enumerate(line, node.first):
        if observed is not None:
            observed.append(SeenInputs(column, [token], dict(env)))
        if is_whole(token):
            env[column] = int(token)
    return at + 1


def _read_lines(
    node: LinesNode, lines: Sequence[Line], at: int, env: Env, observed: list[SeenInputs] | None
) -> int | None:
    count = len(lines) - at if node.count is None else node.count.value(env)
    width = node.width.value(env) if isinstance(node.width, LengthReference) else node.width
    block = lines[at : at + count] if count >= 0 else []
    if count < 0 or len(block) < count or any(len(line) != width for line in block):
        return None
    if observed is None:
        return at + count
    if isinstance(node.width, LengthReference):
        observed.append(SeenInputs(node.first, [token for line in block for token in line], dict(env)))
    else:
        observed.extend(SeenInputs(node.first + j, [line[j] for line in block], dict(env)) for j in range(width))
    return at + count


def blocks_of(nodes: Sequence[Node]) -> Iterator[LinesNode]:
    """Yield the blocks of lines of a form."""
    for node in nodes:
        if isinstance(node, RepeatNode):
            yield from blocks_of(node.nodes)
        elif isinstance(node, LinesNode):
            yield node
