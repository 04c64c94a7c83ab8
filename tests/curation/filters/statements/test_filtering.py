"""The format filter as a whole: nothing lost, order kept, originals kept, the same every time."""

from __future__ import annotations

import random

import polars as pl

from curation.config import StatementSettings
from curation.filters.statements.filtering import filter_statements
from curation.records import DROPPED, PROBLEM, DropReason


def problems(*rows: dict[str, object]) -> pl.DataFrame:
    """Rows in the `PROBLEM` schema with the given columns filled in."""
    blank = {"group": "g", "domain": "math", "lang": "en", "source": "test", "weight": 1.0}
    filled = [{**blank, "id": str(index), "row": index, **row} for index, row in enumerate(rows)]
    return pl.DataFrame([{name: row.get(name) for name in PROBLEM.names()} for row in filled], schema=PROBLEM)


OPEN = {"statement": "What is $2 + 2$?", "answer": "4"}
PROOF = {"statement": "Prove that $2$ is prime.", "answer": None}
CHOICE = {"statement": "What is $2 + 2$?", "answer": "B", "choices": ["A. 3", "B. 4", "C. 5"]}
WHICH = {"statement": "Which of these is prime?", "answer": "A", "choices": ["A. 7", "B. 8", "C. 9"]}
DIRTY = {"statement": "Compute $7 \\cdot 8$.\n\\end{problem}\n\\noindent", "answer": "56\\\\\n\\noindent"}


def test_kept_and_dropped_in_their_schemas_and_in_order() -> None:
    frame = problems(OPEN, PROOF, CHOICE, WHICH, DIRTY)
    kept, dropped = filter_statements(frame)
    assert kept.schema == PROBLEM
    assert dropped.schema == DROPPED
    assert kept["id"].to_list() == ["0", "2", "4"]
    assert dropped["id"].to_list() == ["1", "3"]
    assert dropped["reason"].to_list() == [DropReason.PROOF, DropReason.MULTIPLE_CHOICE]
    assert dropped["stage"].unique().to_list() == ["statements"]
    assert dropped["evidence"].to_list() == ["proof: Prove that", "multiple_choice: 7"]


def test_originals_are_kept_only_where_something_was_rewritten() -> None:
    kept, _ = filter_statements(problems(OPEN, CHOICE, DIRTY))
    assert kept["statement"].to_list() == ["What is $2 + 2$?", "What is $2 + 2$?", "Compute $7 \\cdot 8$."]
    assert kept["answer"].to_list() == ["4", "4", "56"]
    assert kept["raw_statement"].to_list() == [None, None, DIRTY["statement"]]
    assert kept["raw_answer"].to_list() == [None, "B", DIRTY["answer"]]
    assert kept["choices"].to_list() == [None, None, None]


def test_a_dropped_row_is_handed_on_as_it_came() -> None:
    row = {"statement": "Prove that $7$ is prime.\n\\end{problem}", "answer": "QED\\\\", "choices": ["A. 1", "B. 2"]}
    frame = problems(row)
    _, dropped = filter_statements(frame, StatementSettings(disabled=("multiple_choice",)))
    assert dropped.select(PROBLEM.names()).equals(frame)


def test_what_an_earlier_stage_kept_as_the_original_stays() -> None:
    kept, _ = filter_statements(problems({**DIRTY, "raw_statement": "the first", "raw_answer": None}))
    assert kept["raw_statement"].to_list() == ["the first"]
    assert kept["raw_answer"].to_list() == [DIRTY["answer"]]


WORDS = (
    "Prove that", "Find $x$", "(a)", "(b)", "(A) 1", "(B) 2", "(C) 3", "which of the following", "如图", "求",
    "证明", "（1）", "（2）", "?", "\\begin{", "Answer: 4", "A.", "B.", "____", "$", "\\noindent", "the", "yes",
    "①", "②", "③", "\n", "图", "докажите", "\ufffd", "\x00", "é🙂",
)  # fmt: skip


def test_whatever_comes_in_is_kept_or_dropped() -> None:
    frame = problems(*drawn_rows(500))
    (kept, dropped), again = filter_statements(frame), filter_statements(frame)
    assert kept.equals(again[0])
    assert dropped.equals(again[1])
    assert sorted([*kept["row"], *dropped["row"]]) == list(range(frame.height))
    assert kept["row"].is_sorted()
    assert dropped["row"].is_sorted()
    assert dropped["reason"].null_count() == dropped["evidence"].null_count() == 0
    assert set(dropped["reason"]) <= set(DropReason)
    assert kept["choices"].null_count() + sum(c == [] for c in kept["choices"].to_list()) == kept.height


def drawn_rows(count: int) -> list[dict[str, object]]:
    draw = random.Random(1)

    def text() -> str | None:
        return " ".join(draw.choices(WORDS, k=draw.randrange(10))) if draw.random() < 0.9 else None

    return [
        {
            "statement": text(),
            "answer": draw.choice(["A", "(B)", "B, C", "2", "①", "yes", "about 3", text()]),
            "choices": draw.choice([None, None, [text() for _ in range(draw.randrange(5))]]),
            "lang": draw.choice([None, "en", "zh", "ru", "xx"]),
            "meta": draw.choice([None, "{}", '{"rubric": 1}']),
        }
        for _ in range(count)
    ]
