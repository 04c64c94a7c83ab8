"""Near-valid negatives: given inputs with one number changed, so that they break one formula of the statement.

They prove a validator: one that accepts ``n = 100001`` where ``n ≤ 100000`` stands does not check it. Structure is
kept, so a validator that only reads the form accepts them.

Invariants: pure. There are none where the statement's names cannot be told (`stated_rules`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from curation.programs.test_generation.forms import InputForm, infer_form
from curation.programs.test_generation.relations import read_input
from curation.programs.test_generation.shapes import is_whole, read_lines, written
from curation.programs.test_generation.stated_rules import Rule

_MOST = 12
_MOST_TOKENS = 60
_SHORTEST = 3


def rule_breaking_inputs(inputs: Sequence[str], statement: str) -> dict[str, Rule]:
    """Return inputs that break a formula of the statement and nothing of their form, with the formula broken.

    Each formula is broken once, by the number just behind a limit where there is one.
    """
    form = infer_form(inputs, statement, careful=True)
    if form is None or form.named is None:
        return {}
    broken: dict[str, Rule] = {}
    for text in sorted(set(inputs), key=len)[:_SHORTEST]:
        for changed, rule in _changes(form, text):
            if rule not in broken.values():
                broken[changed] = rule
            if len(broken) >= _MOST:
                return broken
    return broken


def _changes(form: InputForm, text: str) -> Iterator[tuple[str, Rule]]:
    lines = read_lines(text)
    if lines is None or form.named is None:
        return
    ends = [end for limits in form.named.limits().values() for end in limits]
    values = sorted(
        {low - 1 for low in ends[::2] if low is not None} | {high + 1 for high in ends[1::2] if high is not None}
    )
    places = [(row, place) for row, line in enumerate(lines) for place in range(len(line)) if is_whole(line[place])]
    for row, place in places[:_MOST_TOKENS]:
        for value in (*values, 0, -1):
            changed = [list(line) for line in lines]
            changed[row][place] = str(value)
            reading = read_input(form.nodes, changed)
            rule = None if reading is None else form.named.broken(reading.seen)
            if rule is not None:
                yield written(changed), rule
