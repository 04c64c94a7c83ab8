"""A response in a message: short, on one line, and without a character that a terminal would obey."""

import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from curation.policies.excerpt import EXCERPT_CHARACTERS, excerpt
from tests.curation.tables import check_table


@given(st.text(alphabet=st.characters(codec=None), max_size=5000))
def test_no_character_can_move_the_cursor_and_the_length_is_bounded(text: str) -> None:
    shown = excerpt(text)
    assert all(unicodedata.category(char) not in {"Cc", "Cf", "Cs"} for char in shown)
    assert len(shown) <= EXCERPT_CHARACTERS + 5
    shown.encode()


def test_what_is_shown() -> None:
    check_table("excerpts", excerpt)
