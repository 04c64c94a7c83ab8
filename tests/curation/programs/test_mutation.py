"""Changed inputs: limits read, numbers that count found, and inputs changed within both."""

from dataclasses import astuple

from curation.programs.mutation import StatedBound, keeps_counts, mutate_input, read_lines, shape_of, stated_bounds
from tests.curation.tables import check_table

LIST = ["3\n5 1 4\n", "5\n2 2 9 7 1\n", "1\n6\n"]
TABLE = ["2 3\nabc\nxyz\n", "3 2\nab\nba\nbb\n"]
EDGES = ["4 2\n1 2\n3 4\n", "3 3\n1 2\n2 3\n1 3\n", "2 1\n1 2\n"]


def test_limits_of_a_statement() -> None:
    check_table("bounds stated", lambda text: [astuple(bound) for bound in stated_bounds(text)])


def test_numbers_that_count_are_found() -> None:
    for texts, count in ((LIST, ((0, 0), "tokens", 1)), (EDGES, ((0, 1), "lines", 1))):
        read = [lines for text in texts if (lines := read_lines(text)) is not None]
        assert [(count.position, count.kind, count.of) for count in shape_of(read).counts] == [count]


def test_changed_inputs_keep_the_form_and_the_limits() -> None:
    made = mutate_input(LIST, [StatedBound(1, 50), StatedBound(1, 100)], 40, "seed")
    assert len(set(made)) == 40
    assert not set(made) & set(LIST)
    sizes = set()
    for text in made:
        head, body = text.splitlines()
        values = [int(word) for word in body.split()]
        assert int(head) == len(values)
        assert all(1 <= value <= 50 for value in values)
        sizes.add(len(values))
    assert len(sizes) > 3


def test_lines_that_are_counted_are_counted_again_and_words_keep_their_letters() -> None:
    for text in mutate_input(EDGES, [], 30, "seed"):
        head, *rest = text.splitlines()
        assert int(head.split()[1]) == len(rest)
    for text in mutate_input(TABLE, [], 20, "seed"):
        assert set(text) <= set("0123456789 \nabcxyz")


def test_inputs_follow_the_seed_and_what_cannot_be_read_is_left_alone() -> None:
    assert mutate_input(LIST, [], 5, "a") == mutate_input(LIST, [], 5, "a") != mutate_input(LIST, [], 5, "b")
    assert mutate_input(["a  b\n\tc\n"], [], 5, "seed") == mutate_input([""], [], 5, "seed") == []


def test_an_input_that_was_cut_does_not_keep_what_its_numbers_count() -> None:
    assert keeps_counts("2\n8 8\n", LIST)
    assert not any(keeps_counts(text, LIST) for text in ("4\n1 2\n", "2\n", "3\r\n1 2 3"))
    assert keeps_counts("4\n1 2\n", ["3\n1 2\n", "7\n5\n"]), "numbers that count nothing are not asked for"
    assert not keeps_counts("2\n8 9\n", []), "nothing is known"
