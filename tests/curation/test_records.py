"""The nouns: a problem's id, the schemas that hang together, the error tree."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from curation import errors
from curation.records import (
    ATTEMPT,
    DECISION,
    DROPPED,
    PASS_RATE,
    PROBLEM,
    VERDICT,
    GoldilocksError,
    Outcome,
    normalise_text,
    problem_id,
)
from tests.curation.tables import check_table


def test_the_id_never_changes_by_accident() -> None:
    # Stored runs, attempts and published sets are filed under these: a change here orphans all of them.
    assert problem_id("What is 12 + 30?") == "c4f47d2805255fde9bb7"
    assert problem_id("Combien font 3² ?", ["A) 6", "B) 9"]) == "f8281a10bd4cd4f5bb7e"
    assert problem_id("What is 12 + 30?", domain="code") == "88c1b78383b4421b09f2"


def test_the_id_sees_choices_and_domain() -> None:
    ids = {
        problem_id("Pick one."),
        problem_id("Pick one.", ["1", "2"]),
        problem_id("Pick one.", ["2", "1"]),
        problem_id("Pick one.", ["12"]),
        problem_id("Pick one.", ["1 2"]),
        problem_id("Pick one. 1 2"),
        problem_id("Pick one.", domain="code"),
    }
    assert len(ids) == 7
    assert problem_id("Pick one.", []) == problem_id("Pick one.", None) == problem_id("Pick one.")
    assert problem_id("Pick one.", [" 1", "2\n"]) == problem_id("Pick one.", ["1", "2"])


@given(st.text(st.characters(codec=None)))
@example("e\u200b\u0301")
@example("\u00ad’\u0301 ")
@example("\x1c \u2028x\u0085")
def test_normalising_twice_changes_nothing(text: str) -> None:
    once = normalise_text(text)
    assert normalise_text(once) == once
    assert once == once.strip()
    assert problem_id(text) == problem_id(once)


def test_a_lone_surrogate_has_an_id() -> None:
    assert len(problem_id("broken \ud835 text")) == 20


def test_the_schemas_hang_together() -> None:
    assert DROPPED.names() == [*PROBLEM.names(), "stage", "reason", "evidence"]
    assert set(PASS_RATE) <= set(DECISION)
    assert all(DECISION[name] == dtype for name, dtype in PASS_RATE.items())
    attempt_key = ["problem", "policy", "prompt", "sampling", "index"]
    assert ATTEMPT.names()[:5] == VERDICT.names()[:5] == attempt_key
    assert all(ATTEMPT[name] == VERDICT[name] for name in attempt_key)
    assert {outcome.value for outcome in Outcome} <= set(PASS_RATE)


def test_every_error_is_one_family() -> None:
    family = [
        value
        for value in vars(errors).values()
        if isinstance(value, type) and issubclass(value, Exception) and value.__module__ == errors.__name__
    ]
    assert len(family) == 7
    assert all(issubclass(error, GoldilocksError) for error in family)
    assert all(error.__name__ in (GoldilocksError.__doc__ or "") for error in family)


def test_the_id_ignores_how_a_text_is_written_and_sees_what_carries_meaning() -> None:
    check_table("same id", lambda text, other: problem_id(text) == problem_id(other))
