"""The review: what a browser sends is what the command writes; `publish/test_review.py` shows that a run applies it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from curation.publish.review import read_verdicts
from curation.storage.locks import lock_folder
from flows.page import open_runs
from flows.page.open_runs import OpenRuns
from flows.publish.versions import newest_run
from tests.flows.conftest import Tiny
from tests.flows.page.conftest import PLANTED, Visitor, planted_rows


def verdict(problem: str, answer: str | None = None, reviewer: str = "Ada", **more: Any) -> dict[str, Any]:
    word = "reject" if answer is None else "accept"
    return {"problem": problem, "verdict": word, "answer": answer, "reviewer": reviewer, **more}


def test_a_verdict_is_written_once_as_the_command_writes_it_and_undo_takes_it_back(planted_copy: Path) -> None:
    visitor = Visitor(planted_copy)
    name = visitor.next("Ada")
    for _ in range(2):
        answer = visitor.decide(verdict(name, "90", note=" why "))
        assert (answer.status_code, answer.json()) == (200, {})
    (line,) = (planted_copy / "review.jsonl").read_text().splitlines()
    assert json.loads(line) == verdict(name, "90", note="why")
    assert visitor.next("Ada") != name
    for _ in range(2):
        assert visitor.decide({"problem": name, "verdict": "undo", "reviewer": "Ada"}).status_code == 200
    assert read_verdicts(planted_copy) == {}
    assert visitor.next("Ada", name) == name


@pytest.mark.slow
def test_a_verdict_that_cannot_be_meant_is_a_sentence(planted_copy: Path) -> None:
    visitor = Visitor(planted_copy)
    name = visitor.next("Ada")
    for message, words in (
        (verdict(name, "7", reviewer=" "), "give your name"),
        (verdict(name, r"\frac{1}{"), "write it plainly"),
        (verdict("0" * 20), "none of the disputed problems"),
        ({"problem": name, "verdict": "perhaps", "reviewer": "Ada"}, "`reject`, or `accept`"),
        ({"problem": 7}, "`problem` is missing"),
    ):
        answer = visitor.decide(message)
        assert answer.status_code in (400, 422), message
        assert words in answer.json()["error"]
    assert not (planted_copy / "review.jsonl").exists()


def test_while_a_run_works_in_the_folder_a_verdict_waits(planted_copy: Path) -> None:
    visitor = Visitor(planted_copy)
    message = verdict(visitor.next("Ada"))
    with lock_folder(planted_copy):
        answer = visitor.decide(message)
    assert answer.status_code == 409
    assert "in use by another run" in answer.json()["error"]
    assert visitor.decide(message).status_code == 200


def test_two_people_get_two_problems_and_nobody_the_same_one_again(planted_copy: Path) -> None:
    ada = Visitor(planted_copy)
    bob = Visitor(planted_copy, app=ada.client.app)
    given = []
    for _ in range(3):
        for visitor, who in ((ada, "Ada"), (bob, "Bob")):
            given.append(name := visitor.next(who))
            assert visitor.next(who) == name
        ada.decide(verdict(given[-2]))
        bob.decide(verdict(given[-1], reviewer="Bob"))
    assert len(set(given)) == 6
    assert f"6 of {PLANTED} settled, 3 by you" in ada.shown("Ada")


def test_if_two_must_agree_the_second_does_not_see_the_first(planted_copy: Path) -> None:
    settings = json.loads((planted_copy / "run.json").read_text())
    settings["recipe"]["labels"]["reviewers"] = 2
    del settings["recipe_hash"]
    (planted_copy / "run.json").write_text(json.dumps(settings))
    ada, bob = Visitor(planted_copy), Visitor(planted_copy)
    name = ada.next("Ada")
    ada.decide(verdict(name, "143", note="I multiplied"))
    assert ada.next("Ada") != name
    assert bob.next("Bob", name) == name
    shown = bob.shown("Bob", name)
    assert "I multiplied" not in shown
    assert "Ada" not in shown
    assert read_verdicts(planted_copy, 2) == {}
    bob.decide(verdict(name, "143", reviewer="Bob"))
    assert set(read_verdicts(planted_copy, 2)) == {name}


def test_all_evidence_on_a_label_is_on_one_screen(planted_copy: Path) -> None:
    visitor = Visitor(planted_copy)
    shown, name = visitor.shown("Ada"), visitor.next("Ada")
    wrong, right = next((wrong, right) for text, wrong, right in planted_rows() if text.split("?")[0] in shown)
    assert f'data-answer="{wrong}" data-key="a"' in shown
    assert f'data-answer="{right}" data-key="r"' in shown
    assert "4 of 4 agree" in shown or "agree on another answer" in shown
    for words in ("Stage 1", "Stage 2", name[:8]):
        assert words in shown


def test_a_lease_ends_and_a_skipped_problem_comes_last(tiny_run: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    run, waiting = newest_run(tiny_run.folder), ["a", "b", "c"]
    runs = OpenRuns(Path())
    assert [runs.lease(run, waiting, name) for name in ("Ada", "Ada", "Bob")] == ["a", "a", "b"]
    monkeypatch.setattr(open_runs, "LEASE_S", 0.0)
    assert [runs.lease(run, waiting, name) for name in ("Ada", "Eve")] == ["a", "a"]
    monkeypatch.undo()
    runs = OpenRuns(Path())
    assert [runs.lease(run, waiting, name, "c") for name in ("Ada", "Bob")] == ["c", "a"]
    skipped = [["a"], ["a", "b"], ["b", "a"]]
    assert [runs.lease(run, waiting, "Bob", skipped=names) for names in skipped] == ["b", "a", "b"]
