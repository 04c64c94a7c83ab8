"""`goldilocks review`: the queue of a run, what people's verdicts do to the next one, and debates between models."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from curation.policies.recorded import Recorded
from curation.publish.review import DISPUTE, read_statements
from curation.questions.debates import ROUNDS, VIEWS, Debate
from curation.records import Completion, PromptRequest, problem_id
from flows.publish.debates import FILE, Debates, hold_debates
from tests.curation.questions.test_debates import HOSTILE, argued_by
from tests.flows.conftest import TINY, Tiny, goldilocks, published, refusal, write_jsonl, write_tiny
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


def test_a_row_that_left_before_the_review_is_not_settled(tiny_copy: Tiny) -> None:
    missing = problem_id(TINY["no reference"][0])
    sentence = refusal("review", tiny_copy.folder, "--accept", missing, "--answer", "13")
    assert "`Format filter` dropped it as missing_answer, before the review" in sentence
    assert not (tiny_copy.folder / "review.jsonl").exists()


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
def test_a_label_that_a_person_confirms_is_not_suspected_again(tiny_copy: Tiny) -> None:
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


# --- debates ---------------------------------------------------------------------------------------------------------

PAIRS = {"conflict 1": ("56", "54"), "wrong label": ("91", "90")}
NAMES = {key: problem_id(TINY[key][0]) for key in PAIRS}
RIGHT = {"56", "90"}
MODELS = "".join(
    f'[models.{name}]\nkind = "recorded"\nname = "{name}@1"\npath = "{name}.jsonl"\n'
    'columns = { problem = "asked", text = "text" }\n'
    for name in ("speaker", "judge")
)
DEBATE = ("--debate", "judge", "--debater", "speaker")
Says = Callable[[PromptRequest], str | None]


def speaker(request: PromptRequest) -> str | None:
    mine = request.statement.split("Your answer:\n\n> ")[1].split("\n")[0]
    return f"<think>which?</think>It is {mine}. <quote>What is</quote>" + ("" if mine in RIGHT else f"\n{HOSTILE}")


def judge(request: PromptRequest) -> str | None:
    """Decides right, whatever is argued."""
    is_a = any(f"Answer A:\n\n> {answer}\n" in request.statement for answer in RIGHT)
    return f"Its sums hold.\nVERDICT: {'A' if is_a else 'B'}"


def write_recorded(run: Tiny, judge: Says = judge, speaker: Says = speaker) -> None:
    """Write what debater and judge would answer, once per question."""
    answers: dict[str, dict[str, str | None]] = {"speaker": {}, "judge": {}}

    def speak(request: PromptRequest) -> str | None:
        return answers["speaker"].setdefault(request.statement, speaker(request))

    for key, pair in PAIRS.items():
        whole = argued_by(Debate(NAMES[key], TINY[key][0], "en", pair), ROUNDS, speak)
        requests = [whole.view_request(view) for view in VIEWS] if whole is not None else []
        answers["judge"].update({request.statement: judge(request) for request in requests})
    for name, made in answers.items():
        rows = [{"asked": asked, "text": text} for asked, text in made.items() if text is not None]
        write_jsonl(run.recipe.parent / f"{name}.jsonl", rows)


@pytest.fixture(scope="module")
def finished(tiny_run: Tiny, tmp_path_factory: pytest.TempPathFactory) -> Tiny:
    """A finished run of the tiny recipe with two disputes, and models for debates; do not write into its folder."""
    made = tiny_run.copy(tmp_path_factory.mktemp("debates"))
    made.recipe.write_text(made.recipe.read_text() + MODELS)
    write_recorded(made)
    run(made.recipe, made.folder)
    return made


@pytest.fixture
def disputed(finished: Tiny, tmp_path: Path) -> Tiny:
    """A copy of it, to be changed at will."""
    return finished.copy(tmp_path)


def debated(run: Tiny, min_score: float | None = None) -> Debates:
    return hold_debates(run.folder, "judge", "speaker", min_score=min_score)


def column(debates: Debates, name: str) -> dict[str, Any]:
    """A column of the debates' table, by the problem."""
    values = dict(debates.rows.select("id", name).iter_rows())
    return {key: values[NAMES[key]] for key in PAIRS}


@pytest.mark.slow
def test_disputes_are_judged_and_shown_and_nothing_is_decided(disputed: Tiny) -> None:
    held = goldilocks("review", disputed.folder, *DEBATE)
    assert held.status == 0, held.err
    assert "2 pairs of answers: 2 judged, 0 without a score" in held.out
    debates = debated(disputed)
    assert column(debates, "score") == {"conflict 1": 1.0, "wrong label": 0.0}
    assert [len(transcript) for transcript in debates.rows["transcript"]] == [2 * ROUNDS] * 2
    shown = goldilocks("review", disputed.folder).out
    assert "debate on 91 against 90: the reference is right with probability 0.00" in shown
    assert "\x1b" not in shown
    assert "2 disputed" in shown, "evidence settles nothing"
    assert not (disputed.folder / "review.jsonl").exists()


def test_no_request_is_made_twice(disputed: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    answer, asked = Recorded.answer, list[tuple[str, str]]()
    dies_at: int | None = 4 * ROUNDS + 3

    async def watched(self: Recorded, problem: PromptRequest, index: int) -> Completion | None:
        if len(asked) == dies_at:
            raise KeyboardInterrupt
        asked.append((self.key.policy, problem.id))
        return await answer(self, problem, index)

    monkeypatch.setattr(Recorded, "answer", watched)
    with pytest.raises(KeyboardInterrupt):
        debated(disputed)
    assert [policy for policy, _ in asked] == ["speaker@1"] * 4 * ROUNDS + ["judge@1"] * 3
    assert not (disputed.folder / FILE).exists()
    dies_at = None
    debated(disputed)
    assert len(asked) == len(set(asked)) == 4 * ROUNDS + 8
    first = (disputed.folder / FILE).read_bytes()
    debated(disputed)
    assert len(asked) == 4 * ROUNDS + 8
    assert (disputed.folder / FILE).read_bytes() == first


def test_a_judge_that_fails_decides_nothing(disputed: Tiny) -> None:
    write_recorded(disputed, judge=lambda request: judge(request) if "91" in request.statement else "Who knows?")
    debates = debated(disputed, min_score=0.6)
    assert column(debates, "score")["conflict 1"] is None
    assert list(debates.settled.values()) == ["90"]
    shown = goldilocks("review", disputed.folder).out
    assert "the judge gave no readable verdict in 4 of 4 views, so nothing is decided" in shown


def test_a_debater_that_fails_decides_nothing(disputed: Tiny) -> None:
    write_recorded(
        disputed, speaker=lambda request: None if "Your answer:\n\n> 90" in request.statement else speaker(request)
    )
    assert column(debated(disputed), "why") == {"conflict 1": None, "wrong label": "a side gave no speech"}


def test_scores_settle_from_a_probability_on_and_people_count_more(disputed: Tiny) -> None:
    name = NAMES["conflict 1"]
    assert goldilocks("review", disputed.folder, "--accept", name, "--answer", "54").status == 0
    settled = goldilocks("review", disputed.folder, *DEBATE, "--decide-at", "0.9")
    assert "1 settled" in settled.out, settled.err
    statements = read_statements(disputed.folder)
    assert [one.answer for one in statements[name]] == ["54"]
    (verdict,) = statements[NAMES["wrong label"]]
    assert (verdict.answer, verdict.reviewer) == ("90", "debate")
    assert "probability 0.00" in (verdict.note or "")


SERVER = 'models.judge={ kind = "endpoint", model = "m", revision = "1", urls = ["http://127.0.0.1:9/v1"] }'


def test_what_cannot_be_meant_is_refused(disputed: Tiny, tmp_path: Path) -> None:
    assert "no run.json" in refusal("review", tmp_path, *DEBATE)
    for options, message in (
        (("--debate", "jugde"), "no table [models.jugde]; defined: "),
        ((*DEBATE, "--set", "seed=1"), "changes models.* only"),
        (("--decide-at", "0.9"), "need --debate MODEL"),
        ((*DEBATE, "--audit", "5"), "each is a command of its own"),
        ((*DEBATE, "--set", SERVER), "models.judge: "),
    ):
        assert message in refusal("review", disputed.folder, *options)
    (disputed.recipe.parent / "judge.jsonl").unlink()
    assert "judge.jsonl" in refusal("review", disputed.folder, *DEBATE)
