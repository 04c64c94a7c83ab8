"""The format filter as a whole: nothing lost, order kept, originals kept, the same every time."""

from __future__ import annotations

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from curation.filters.statements import RULES, VERSION, StatementSettings, classify, filter_statements
from curation.filters.statements.cleaning import clean_text
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
    out = filter_statements(frame)
    assert out.kept.schema == PROBLEM
    assert out.dropped.schema == DROPPED
    assert out.kept["id"].to_list() == ["0", "2", "4"]
    assert out.dropped["id"].to_list() == ["1", "3"]
    assert out.dropped["reason"].to_list() == [DropReason.PROOF, DropReason.MULTIPLE_CHOICE]
    assert out.dropped["stage"].unique().to_list() == ["statements"]
    assert out.dropped["evidence"].to_list() == ["proof: Prove that", "multiple_choice: 7"]


def test_originals_are_kept_only_where_something_was_rewritten() -> None:
    kept = filter_statements(problems(OPEN, CHOICE, DIRTY)).kept
    assert kept["statement"].to_list() == ["What is $2 + 2$?", "What is $2 + 2$?", "Compute $7 \\cdot 8$."]
    assert kept["answer"].to_list() == ["4", "4", "56"]
    assert kept["raw_statement"].to_list() == [None, None, DIRTY["statement"]]
    assert kept["raw_answer"].to_list() == [None, "B", DIRTY["answer"]]
    assert kept["choices"].to_list() == [None, None, None]


def test_a_dropped_row_is_handed_on_as_it_came() -> None:
    row = {"statement": "Prove that $7$ is prime.\n\\end{problem}", "answer": "QED\\\\", "choices": ["A. 1", "B. 2"]}
    frame = problems(row)
    out = filter_statements(frame, StatementSettings(disabled=("multiple_choice",)))
    assert out.dropped.select(PROBLEM.names()).equals(frame)


def test_what_an_earlier_stage_kept_as_the_original_stays() -> None:
    kept = filter_statements(problems({**DIRTY, "raw_statement": "the first", "raw_answer": None})).kept
    assert kept["raw_statement"].to_list() == ["the first"]
    assert kept["raw_answer"].to_list() == [DIRTY["answer"]]


def test_rewriting_can_be_switched_off() -> None:
    kept = filter_statements(problems(CHOICE), StatementSettings(disabled=("multiple_choice",))).kept
    assert kept["choices"].to_list() == [["A. 3", "B. 4", "C. 5"]]


def test_an_empty_frame() -> None:
    out = filter_statements(problems())
    assert out.kept.is_empty()
    assert out.dropped.is_empty()
    assert out.dropped.schema == DROPPED


def test_debris_of_many_kinds_goes_and_formulas_stay() -> None:
    cases = {
        "Find $x$.\n\\end{problem}\n\n\\noindent": "Find $x$.",
        "The value is \\underline{\\hspace{2cm}}.\\label{p1} \\par": "The value is ____.",
        "<p>What is $a<b$?</p>": "What is $a<b$?",
        "Tom\\textquotesingle s $$x\\textless{}3$$ &nbsp;&amp; more": "Tom's $$x<3$$  & more",
        "共有~\\uline{~~~~~~}~种": "共有____种",
        "17. (12 分) 求 $x$": "求 $x$",
        "The sum is \\_\\_\\_\\_.": "The sum is ____.",
        "$\\parallel$ and $\\particle$ stay\\\\": "$\\parallel$ and $\\particle$ stay",
        "Find $x < 3$ and $y > 2$.": "Find $x < 3$ and $y > 2$.",
    }
    frame = clean_text(pl.DataFrame({"text": list(cases)}), "text")
    assert frame["text"].to_list() == list(cases.values())


PIECES = st.sampled_from(
    [
        "Find $x$",
        " \\noindent",
        "\n\\end{problem}",
        "~~ ~",
        "<br/>",
        "&lt;",
        "\\uline{~~}",
        "\\\\",
        "\n",
        "\\par ",
        " 求",
        "<b>",
        "12. (5 分) ",
    ]
)


@given(st.lists(PIECES, max_size=12).map("".join))
@settings(max_examples=80, deadline=None)
def test_cleaning_twice_is_cleaning_once(text: str) -> None:
    once = clean_text(pl.DataFrame({"text": [text]}), "text")
    assert clean_text(once, "text").equals(once)


WORDS = st.sampled_from(
    [
        "Prove that", "Find $x$", "(a)", "(b)", "(A) 1", "(B) 2", "(C) 3", "which of the following", "如图", "求",
        "证明", "（1）", "（2）", "?", "\\begin{", "Answer: 4", "A.", "B.", "____", "$", "\\noindent", "the", "yes",
        "①", "②", "③", "\n", "图", "докажите", "\ufffd",
    ]
)  # fmt: skip
TEXT = st.none() | st.lists(WORDS, max_size=10).map(" ".join) | st.text(max_size=30)
ROW = st.fixed_dictionaries(
    {
        "statement": TEXT,
        "answer": TEXT | st.sampled_from(["A", "(B)", "B, C", "2", "①", "yes", "about 3"]),
        "choices": st.none() | st.lists(TEXT, max_size=4),
        "lang": st.sampled_from([None, "en", "zh", "ru", "xx"]),
        "meta": st.sampled_from([None, "{}", '{"rubric": 1}']),
    }
)


@given(st.lists(ROW, max_size=30))
@settings(max_examples=10, deadline=None)
def test_whatever_comes_in_is_kept_or_dropped(rows: list[dict[str, object]]) -> None:
    frame = problems(*rows)
    out = filter_statements(frame)
    again = filter_statements(frame)
    assert out.kept.equals(again.kept)
    assert out.dropped.equals(again.dropped)
    assert sorted([*out.kept["row"], *out.dropped["row"]]) == list(range(len(rows)))
    assert out.kept["row"].is_sorted()
    assert out.dropped["row"].is_sorted()
    assert out.dropped["reason"].null_count() == out.dropped["evidence"].null_count() == 0
    assert set(out.dropped["reason"]) <= set(DropReason)
    assert out.kept["choices"].null_count() + sum(c == [] for c in out.kept["choices"].to_list()) == out.kept.height


def test_classify_gives_one_line_per_row_in_order() -> None:
    rows = pl.DataFrame(
        {"id": [7, 8], "statement": ["Prove that $2$ is prime.", "What is $2+2$?\\\\"], "answer": [None, "4"]}
    )
    lines = classify(rows)
    assert lines.columns == ["id", "keep", "reason", "evidence", "statement", "answer", "rule"]
    assert lines.rows() == [
        ("7", False, "proof", "Prove that", "Prove that $2$ is prime.", None, "proof"),
        ("8", True, None, None, "What is $2+2$?", "4", None),
    ]
    assert classify(rows.drop("id", "answer"))["id"].to_list() == ["0", "1"]


def test_version_and_table() -> None:
    assert VERSION.startswith("statements@")
    assert {rule.reason for rule in RULES} <= set(DropReason)


def test_many_rows_get_the_verdicts_of_few() -> None:
    few = problems(OPEN, PROOF, CHOICE, WHICH, DIRTY)
    many = pl.concat([few] * 5_000)
    verdicts = classify(many).drop("id")
    assert verdicts.equals(pl.concat([classify(few).drop("id")] * 5_000))
