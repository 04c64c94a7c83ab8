"""`goldilocks review`: the queue of a run, and what a person's verdicts do to the next one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from curation.publish.review import DISPUTE
from curation.records import problem_id
from tests.flows.conftest import TINY, Tiny, goldilocks, published, refusal, write_tiny
from tests.flows.run.folders import card, run


def name_of(key: str) -> str:
    return problem_id(TINY[key][0])


def review(run: Tiny, *arguments: str) -> str:
    said = goldilocks("review", run.folder, *arguments)
    assert (said.status, said.err) == (0, "")
    return said.out


def test_the_queue_is_published_and_printed(tiny_run: Tiny) -> None:
    queue = published(tiny_run.folder, "disputed")
    assert queue.schema == DISPUTE
    assert queue.select("id", "kind", "references").rows() == [
        (name_of("conflict 1"), "conflicting_references", ["56", "54"]),
        (name_of("wrong label"), "suspected_wrong_label", ["91", "90"]),
    ]
    lines = (tiny_run.folder / "curated" / "disputed" / "disputed.jsonl").read_text().splitlines()
    assert [json.loads(line)["id"] for line in lines] == queue["id"].to_list()
    text = review(tiny_run)
    assert f"{name_of('conflict 1')}  copies of one problem with different references (school:8, school:9)" in text
    assert "references  56 | 54" in text
    assert "2 disputed (conflicting_references 1, suspected_wrong_label 1); 0 problems settled by people" in text
    status = goldilocks("status", tiny_run.folder).out
    assert "disputed labels: conflicting_references 1, suspected_wrong_label 1" in status
    assert "| Copies of one problem with different references | 1 |" in card(tiny_run.folder)


@pytest.mark.slow
def test_accepted_references_go_on_and_rejected_problems_leave(tiny_copy: Tiny) -> None:
    read = tiny_copy.table("data").height + tiny_copy.table("dropped").height
    review(tiny_copy, "--accept", name_of("conflict 1"), "--answer", "56")
    review(tiny_copy, "--accept", name_of("wrong label"), "--answer", "90")
    review(tiny_copy, "--reject", name_of("half"))
    assert "0 disputed; 3 problems settled by people" in review(tiny_copy)
    run(tiny_copy.recipe, tiny_copy.folder)
    data, dropped = tiny_copy.table("data"), tiny_copy.table("dropped")
    assert data.height + dropped.height == read
    right = data.filter(id=name_of("conflict 1"))
    assert right.select("row", "answer", "raw_answer").rows() == [(8, "56", None)]
    copy = dropped.filter(id=name_of("conflict 1"))
    assert copy.select("row", "answer", "raw_answer", "reason").rows() == [(9, "56", "before review: 54", "duplicate")]
    mended = data.filter(id=name_of("wrong label"))
    assert mended.select("answer", "raw_answer").rows() == [("90", "before review: 91")]
    gone = dropped.filter(id=name_of("half"))
    assert gone["reason"].to_list() == ["rejected", "rejected"]
    assert published(tiny_copy.folder, "disputed").is_empty()
    assert "Review by people" in goldilocks("status", tiny_copy.folder).out
    explained = goldilocks("explain", tiny_copy.folder, name_of("half")).out
    assert "Review by people: dropped row 0 of school, rejected" in explained


@pytest.mark.slow
def test_a_label_that_a_person_stands_by_is_not_suspected_again(tiny_copy: Tiny) -> None:
    name = name_of("wrong label")
    review(tiny_copy, "--accept", name, "--answer", "91")
    run(tiny_copy.recipe, tiny_copy.folder)
    kept = tiny_copy.table("data").filter(id=name)
    assert kept.select("answer", "raw_answer", "correct", "judged").rows() == [("91", None, 1, 4)]
    assert tiny_copy.table("dropped").filter(id=name).is_empty()
    assert "1 of 4 correct" in goldilocks("explain", tiny_copy.folder, name).out
    review(tiny_copy, "--reject", name)
    run(tiny_copy.recipe, tiny_copy.folder)
    assert tiny_copy.table("data").filter(id=name).is_empty()


def test_a_verdict_that_cannot_be_meant_is_refused(tiny_copy: Tiny) -> None:
    half = name_of("half")
    for arguments, why in (
        (("--accept", half), "belong together"),
        (("--answer", "4"), "belong together"),
        (("--accept", half, "--answer", "4", "--reject", half), "give one of them"),
        (("--accept", half, "--answer", "\\frac{1}{"), "cannot judge against it"),
        (("--reject", "zz"), "no problem whose id begins"),
    ):
        assert why in refusal("review", tiny_copy.folder, *arguments)
    assert not (tiny_copy.folder / "review.jsonl").exists()


@pytest.mark.slow
def test_a_needed_rewriting_that_nothing_proves_goes_to_the_disputes(tmp_path: Path) -> None:
    recipe = write_tiny(tmp_path / "in")
    problems, out = tmp_path / "in" / "problems.jsonl", tmp_path / "run"
    spoiled = problems.read_text().replace('"final": "221"', r'"final": "221 \\\\ \\end{array}"')
    assert spoiled != problems.read_text()
    problems.write_text(spoiled)
    run(recipe, out)
    dropped = published(out, "dropped").filter(reason="unproven_rewriting")
    assert dropped.select("stage", "answer").rows() == [("references", r"221 \\ \end{array}")]
    (dispute,) = published(out, "disputed").filter(kind="unproven_rewriting").rows(named=True)
    assert dispute["references"] == [r"221 \\ \end{array}", "221"]
    why = "without its layout it would be 221"
    assert why in dispute["evidence"]
    assert "unproven_rewriting" in goldilocks("status", out).out
    assert why in goldilocks("explain", out, dispute["id"]).out
    assert "references that the verifier reads only without their layout" in goldilocks("review", out).out
    assert goldilocks("review", out, "--accept", dispute["id"], "--answer", "221").status == 0
    run(recipe, out)
    assert "What is 13 times 17?" in published(out, "data")["statement"].to_list()
    assert published(out, "disputed").filter(kind="unproven_rewriting").is_empty()
