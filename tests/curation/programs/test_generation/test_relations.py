"""What given inputs have in common, and which new ones break it."""

import pytest

from curation.programs.test_generation.demands import input_section, spoken_of
from curation.programs.test_generation.grammar import infer_grammar
from curation.programs.test_generation.graphs import draw_edges
from curation.programs.test_generation.relations import Relations, infer_relations, read_input, spelling
from curation.programs.test_generation.shapes import read_lines

LISTS = ["3 2\n2 3 1\n", "4 4\n4 1 2 3\n", "2 1\n2 1\n"]
GRIDS = ["2 3\n#S.\n.#.\n", "3 4\n....\n###S\n.#.#\n"]


def inferred(inputs: list[str]) -> tuple[Relations, list[str | None]]:
    """Return the relations of some inputs, and which of them the inputs themselves break."""
    read = [lines for text in inputs if (lines := read_lines(text)) is not None]
    nodes = infer_grammar(read)
    assert nodes is not None
    readings = [read_input(nodes, lines, text) for lines, text in zip(read, inputs, strict=True)]
    relations = infer_relations([reading for reading in readings if reading is not None])
    return relations, [None if one is None else str(relations.broken(one) or "") for one in readings]


def breaks(inputs: list[str], text: str) -> str:
    relations, _ = inferred(inputs)
    nodes = infer_grammar([lines for one in inputs if (lines := read_lines(one)) is not None])
    lines = read_lines(text)
    assert nodes is not None
    assert lines is not None
    reading = read_input(nodes, lines, text)
    if reading is None:
        return "form"
    key = relations.broken(reading)
    return "" if key is None else key[0]


@pytest.mark.parametrize("inputs", [LISTS, GRIDS, ["2\nab ba\n", "1\n(()\n"], ["5\n", "6\n"]])
def test_a_given_input_breaks_nothing(inputs: list[str]) -> None:
    assert inferred(inputs)[1] == [""] * len(inputs)


@pytest.mark.parametrize(
    ("inputs", "text", "broken"),
    [
        (LISTS, "3 2\n3 1 2\n", ""),
        (LISTS, "3 5\n3 1 2\n", "compare"),  # k ≤ n
        (LISTS, "3 2\n2 2 1\n", "different"),
        (LISTS, "3 2\n2 4 1\n", "compare"),
        (LISTS, "3 2\n1 3 2\n", "own_place"),
        (LISTS, "3 2\n2 1\n", "form"),
        (GRIDS, "1 2\n#S\n", ""),
        (GRIDS, "1 2\n##\n", "once"),
        (GRIDS, "1 2\nxS\n", "spelling"),
        (["2\n1 9\n4 7\n", "3\n0 3\n2 5\n1 2\n"], "1\n5 5\n", "beside"),
        (["1\n()\n", "2\n(())()\n"], "1\n)(\n", "balanced"),
        (["3 6\n1 2 3\n", "2 5\n1 4\n"], "2 5\n1 3\n", "sum"),
    ],
)
def test_a_new_input_that_breaks_a_relation_is_seen(inputs: list[str], text: str, broken: str) -> None:
    assert breaks(inputs, text) == broken


@pytest.mark.parametrize(
    ("word", "classes"),
    [("Anna-2", "Aa-0"), ("CCdluu", "AAa"), ("HELLO", "AA"), ("12.50", "0.00"), ("aBcD", "aAaA"), ("-7.5", "0.0")],
)
def test_spellings(word: str, classes: str) -> None:
    assert spelling(word) == classes


def test_words_of_the_statement_tell_which_relations_may_be_meant() -> None:
    statement = "A story of distinct trees.\n\nInput\n\nThen $n$ numbers, in increasing order.\n\nOutput\n\nThe sum."
    assert input_section(statement) == "Then $n$ numbers, in increasing order."
    assert "ordered" in spoken_of(statement)
    assert not spoken_of(statement) & {"different", "connected", "sum", "parity", "compare"}


@pytest.mark.parametrize("seed", range(12))
def test_graphs_are_what_was_asked_for(seed: int) -> None:
    import random

    edges = draw_edges(9, 1, 7, random.Random(seed), connected=True, simple=True, sort=True)
    assert len({frozenset(edge) for edge in edges}) == 9
    assert all(1 <= a < b <= 7 for a, b in edges)
    reached = {1}
    for _ in range(7):
        reached |= {node for edge in edges if reached & set(edge) for node in edge}
    assert reached == set(range(1, 8))
    with pytest.raises(ValueError, match="no graph"):
        draw_edges(4, 1, 3, random.Random(seed), connected=False, simple=True, sort=False)
