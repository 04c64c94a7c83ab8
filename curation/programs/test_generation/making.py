"""New inputs from those at hand: most grown from their common form, the others made by changing one of them."""

from __future__ import annotations

from collections.abc import Sequence

from curation.programs.test_generation.demands import promises
from curation.programs.test_generation.forms import infer_form
from curation.programs.test_generation.growing import grow_inputs
from curation.programs.test_generation.limits import stated_bounds
from curation.programs.test_generation.mutation import mutate_input

_GROWN = 2 / 3


def new_inputs(
    inputs: Sequence[str], statement: str, count: int, seed: str, most_bytes: int, *, careful: bool = False
) -> list[str]:
    """Return up to ``count`` inputs that are not among ``inputs``, no two alike.

    Args:
        inputs: those seen, trusted to be valid.
        statement: whose limits are kept where they can be told.
        most_bytes: size of the largest one.
        careful: nothing will say whether they are valid: all keep the form, the relations and the ranges that those
            seen show. There are none where no form is found, or the statement promises what no relation expresses.
    """
    if careful and promises(statement):
        return []
    form = infer_form(inputs, statement, careful=careful)
    grown = [] if form is None else grow_inputs(form, inputs, round(count * _GROWN), seed, most_bytes)
    if careful and form is None:
        return []
    mutated = mutate_input(inputs, stated_bounds(statement), count - len(grown), seed)
    fitting = [text for text in mutated if len(text) <= most_bytes]
    if careful and form is not None:
        fitting = [text for text in fitting if form.allows(text)]
    return list(dict.fromkeys([*grown, *fitting]))
