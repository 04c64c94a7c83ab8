"""A response in a message: short, on one line, and without a character that a terminal would obey."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from curation.policies.excerpt import EXCERPT_CHARACTERS, excerpt


@given(st.text(alphabet=st.characters(codec=None), max_size=5000))
def test_no_character_can_move_the_cursor_and_the_length_is_bounded(text: str) -> None:
    shown = excerpt(text)
    assert all(unicodedata.category(char) not in {"Cc", "Cf", "Cs"} for char in shown)
    assert len(shown) <= EXCERPT_CHARACTERS + 5
    shown.encode()


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("17 + 25\n= 42", '"17 + 25 = 42"'),
        ("\x1b[2J\x1b]0;owned\x07red", '"[2J ]0;owned red"'),
        ("\\boxed{7} [bold]", '"\\boxed{7} [bold]"'),
        ("", '""'),
        (None, "(no text)"),
        ("问题的答案是 7", '"问题的答案是 7"'),
    ],
)
def test_what_is_shown(text: str | None, shown: str) -> None:
    assert excerpt(text) == shown
