"""The nouns: a problem's id, the schemas that hang together, the error tree."""

from hypothesis import example, given
from hypothesis import strategies as st

from curation.records import normalise_text, problem_id
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


def test_the_id_ignores_how_a_text_is_written_and_sees_what_carries_meaning() -> None:
    check_table("same id", lambda text, other: problem_id(text) == problem_id(other))
