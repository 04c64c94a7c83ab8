"""The queue of disputed labels, and what people's verdicts do to rows."""

import resource
import signal
from pathlib import Path
from typing import Any

import pytest

from curation.filters.dedup.near import MEMBER
from curation.publish.review import (
    FILE,
    ReviewVerdict,
    add_verdict,
    apply_verdicts,
    doubtful_verdicts,
    keep_accepted_labels,
    near_conflicts,
    read_verdicts,
    undo_verdict,
)
from curation.records import DECISION, DROPPED, PROBLEM, VERDICT, DropReason, StoreError
from tests.curation.tables import frame


def problem(name: str, answer: str, row: int = 0, **more: Any) -> dict[str, Any]:
    about = {"id": name, "statement": f"What is {name}?", "answer": answer}
    return about | {"source": "s", "row": row, "lang": "en"} | more


@pytest.mark.parametrize(
    "line", ["{", '{"problem": "a", "verdict": "maybe"}', '{"problem": "a", "verdict": "reject", "answer": "4"}']
)
def test_a_line_that_is_no_verdict_is_named(line: str, tmp_path: Path) -> None:
    (tmp_path / FILE).write_text('{"problem": "a", "verdict": "reject", "answer": null}\n' + line + "\n")
    with pytest.raises(StoreError, match="line 2"):
        read_verdicts(tmp_path)


def test_a_line_that_was_cut_off_is_set_aside_and_nothing_stored_is_lost(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    add_verdict(tmp_path, ReviewVerdict("a", "1", note="a separator \u2028 within a note ends no line"))
    whole = (tmp_path / FILE).read_bytes()
    for cut in range(1, len(whole) - 1):
        (tmp_path / FILE).write_bytes(whole + whole[:cut].replace(b'"a"', b'"b"'))
        assert set(read_verdicts(tmp_path)) == {"a"}
    assert "cut off" in caplog.text
    add_verdict(tmp_path, ReviewVerdict("c", None))
    assert set(read_verdicts(tmp_path)) == {"a", "c"}


def test_a_label_on_a_full_disk_is_refused_and_leaves_no_half_line(tmp_path: Path) -> None:
    add_verdict(tmp_path, ReviewVerdict("a", "1"))
    size = (tmp_path / FILE).stat().st_size
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + 20, hard))
    try:
        with pytest.raises(OSError, match="File too large"):
            add_verdict(tmp_path, ReviewVerdict("b", "2"))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, ignored)
    assert (tmp_path / FILE).stat().st_size == size
    add_verdict(tmp_path, ReviewVerdict("b", "2"))
    assert set(read_verdicts(tmp_path)) == {"a", "b"}


def test_accepted_rows_go_on_with_their_reference_and_rejected_ones_leave() -> None:
    answers = zip("abcde", "12345", strict=True)
    rows = frame(PROBLEM, *(problem(name, answer, raw_answer="C" if name == "c" else None) for name, answer in answers))
    said = {name: ReviewVerdict(name, answer) for name, answer in {"a": "7", "b": None, "c": "9", "d": "4"}.items()}
    kept, dropped = apply_verdicts(rows, said)
    assert (kept.schema, dropped.schema) == (PROBLEM, DROPPED)
    assert kept.select("id", "answer", "raw_answer").rows() == [
        ("a", "7", "before review: 1"),
        ("c", "9", "before review: C"),
        ("d", "4", None),
        ("e", "5", None),
    ]
    assert dropped.select("id", "answer", "reason").rows() == [("b", "2", DropReason.REJECTED)]


def test_a_near_duplicate_in_conflict_names_the_row_that_stays() -> None:
    conflict = {"reason": DropReason.CONFLICTING_ANSWERS, "evidence": "0.9 like row 2 of t"}
    rows, kept = frame(DROPPED, problem("a", "1", 4), **conflict), ({"row": 4, "kept_answer": "8"}, {"row": 5})
    members = frame(MEMBER, *kept, source="s", kept_id="k", kept_source="t", kept_row=2)
    (row,) = near_conflicts(rows, members).iter_rows(named=True)
    assert (row["id"], row["references"], row["rows"]) == ("a", ["1", "8"], ["s:4", "t:2"])
    assert row["evidence"].endswith("the row that stays is problem k")


def test_answers_with_doubtful_verdicts_are_offered_and_counted() -> None:
    problems = frame(PROBLEM, problem("a", "1/3"))
    answers = ("0.33", None, "0.3", "0.3")
    rows = ({"problem": "a", "answer": answer, "outcome": "wrong", "method": "words (doubtful)"} for answer in answers)
    (row,) = doubtful_verdicts(problems, frame(VERDICT, *rows)).iter_rows(named=True)
    assert row["references"] == ["1/3", "0.3", "0.33"]
    assert row["evidence"].startswith("2 attempts: 0.3 wrong (words (doubtful)); 1 attempts: 0.33 wrong")


def test_nobody_suspects_a_label_that_a_person_accepted() -> None:
    suspected = {"keep": False, "reason": DropReason.SUSPECTED_WRONG_LABEL, "evidence": "9 of 12"}
    names = [{"problem": name} for name in "abc"]
    decisions = frame(DECISION, names[0] | suspected, names[1] | suspected, names[2] | {"keep": True})
    kept = {"keep": True, "evidence": "3 of 12"}
    open_minded = frame(DECISION, names[0] | kept, names[1] | {"keep": True}, names[2] | {"keep": False})
    said = {name: ReviewVerdict(name, "1") for name in "ac"}
    found = keep_accepted_labels(decisions, open_minded, said)
    assert found.select("problem", "keep", "evidence").rows() == [
        ("a", True, "3 of 12"),
        ("b", False, "9 of 12"),
        ("c", True, None),
    ]
    assert found.schema == DECISION
    assert keep_accepted_labels(decisions, open_minded, {}).equals(decisions)


def test_the_last_verdict_counts_until_it_is_taken_back_or_two_people_must_agree(tmp_path: Path) -> None:
    assert read_verdicts(tmp_path) == {}
    ada, bob = ReviewVerdict("a", "1 / 2", "Ada"), ReviewVerdict("a", None, "Bob", "units")
    for verdict in (ada, ada, bob):
        add_verdict(tmp_path, verdict)
    assert (read_verdicts(tmp_path), read_verdicts(tmp_path, 2)) == ({"a": bob}, {})
    undo_verdict(tmp_path, "a", "Bob")
    assert read_verdicts(tmp_path) == {"a": ada}
    add_verdict(tmp_path, agreeing := ReviewVerdict("a", "1  / 2", "Bob"))
    assert read_verdicts(tmp_path, 2) == {"a": agreeing}
    for name in ("Ada", "Ada", "Bob", "Bob"):
        undo_verdict(tmp_path, "a", name)
    assert read_verdicts(tmp_path) == {}
