"""Inputs of the kind on which right solutions disagree are not kept, though they agree on some of them."""

from __future__ import annotations

from curation.programs.test_generation import RunInput, doubtful_inputs, infer_form

GIVEN = ["3\n4 1 9\n", "2\n7 3\n", "4\n8 2 6 1\n"]
STATEMENT = "One line with $n$, then $n$ numbers."


def listed(*values: int) -> str:
    return f"{len(values)}\n{' '.join(map(str, values))}\n"


def test_a_relation_that_the_doubtful_break_and_the_given_keep_is_the_trait() -> None:
    form = infer_form(GIVEN, STATEMENT, careful=False)
    assert form is not None
    clean = [RunInput(listed(at, 90 - at, 100 + at), "small whole", doubtful=False) for at in range(20)]
    twice = [RunInput(listed(at, at, 100), "small whole", doubtful=at % 2 == 0) for at in range(8)]
    places = doubtful_inputs(form, GIVEN, [*clean, *twice])
    assert places == frozenset(range(20, 28))


def test_what_most_doubtful_inputs_share_comes_before_shapes_that_few_of_them_have() -> None:
    form = infer_form(GIVEN, STATEMENT, careful=False)
    clean = [RunInput(listed(at, 90 - at, 100 + at), "small whole", doubtful=False) for at in range(20)]
    assert form is not None
    alone = [RunInput(listed(at, at, 100), f"shape {at // 3}", doubtful=True) for at in range(12)]
    agreed = [RunInput(listed(at, at, 100), "small whole", doubtful=False) for at in range(14)]
    assert doubtful_inputs(form, GIVEN, [*clean, *alone, *agreed]) == frozenset(range(20, 46))


def test_a_shape_is_the_trait_where_no_relation_is() -> None:
    run = [RunInput(f"{at}", "least high" if at < 6 else "small whole", doubtful=at in (0, 3)) for at in range(40)]
    assert doubtful_inputs("no form", [], run) == frozenset(range(6))


def test_one_doubt_may_be_a_solutions_own_fault() -> None:
    run = [RunInput(f"{at}", "small whole", doubtful=at == 7) for at in range(40)]
    assert doubtful_inputs("no form", [], run) == frozenset({7})
    assert doubtful_inputs("no form", [], run[:3]) == frozenset()


def test_doubts_that_are_everywhere_tell_no_trait() -> None:
    run = [RunInput(f"{at}", "small whole", doubtful=at % 10 == 0) for at in range(40)]
    assert doubtful_inputs("no form", [], run) == frozenset({0, 10, 20, 30})
