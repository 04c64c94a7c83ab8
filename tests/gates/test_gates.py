"""The frame of the gates: limits, statuses, marks, stored answers, the exit status, and questions to a model."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from curation.prompts import Prompt
from curation.publish.export_formats import FORMATS
from curation.questions import QUESTIONS
from curation.questions.votes import Vote
from curation.records import Domain, PromptRequest, problem_id
from flows.run.policies import parse_model
from flows.run.policy_session import model_session
from flows.stages.question import registered
from tests.consumers.environments import TRAINERS
from tests.gates import __main__ as command
from tests.gates import ask, small_model, stored
from tests.gates.base import Gate, Limit, Measured, Row, SkippedError, StaleError, middle, number, run, wilson

ADD = Prompt("add@1", "You add.", lambda request: f"Add: {request.statement}")


def measured(value: float, limit: Limit, until: str = "", **others: object) -> Row:
    found = Measured(value, **others)  # type: ignore[arg-type]
    return run(Gate("room/name", "room", "quick", limit, lambda: found, until))


def raising(error: Exception) -> Row:
    def measure() -> Measured:
        raise error

    return run(Gate("room/name", "room", "quick", Limit("<=", 1), measure, ""))


@pytest.mark.parametrize(
    ("limit", "admitted", "refused"),
    [(Limit(">=", 95.1), 95.1, 95.09), (Limit("<=", 3), 3, 4), (Limit("==", 100), 100, 99.9)],
)
def test_a_limit_admits_its_bound_and_refuses_what_is_beyond(limit: Limit, admitted: float, refused: float) -> None:
    assert limit.admits(admitted)
    assert not limit.admits(refused)
    assert not limit.admits(float("nan"))
    assert measured(admitted, limit).status == "holds"
    assert measured(refused, limit).status == "fails"
    assert measured(float("nan"), limit).status == "fails"


def test_a_row_has_the_figure_its_interval_and_the_limit() -> None:
    row = measured(3, Limit("<=", 3, "pairs"), of=215, interval=(1.0234, 8.654), note="which")
    assert (row.value, row.interval, row.limit, row.note) == ("3 of 215 pairs", "1.02 to 8.65", "<= 3 pairs", "which")


def test_an_error_is_a_failure_with_its_text(capsys: pytest.CaptureFixture[str]) -> None:
    row = raising(ValueError("no such\nthing"))
    assert (row.status, row.note, row.value) == ("fails", "ValueError: no such thing", "")
    assert "Traceback" in capsys.readouterr().err


@pytest.mark.parametrize(("error", "status"), [(SkippedError("no GPU"), "skipped"), (StaleError("2 of 9"), "stale")])
def test_what_cannot_be_measured_is_no_pass_and_states_why(error: Exception, status: str) -> None:
    row = raising(error)
    assert (row.status, row.note, row.value) == (status, str(error), "")


def test_a_marked_gate_is_expected_to_fail_and_fails_if_it_holds() -> None:
    late = measured(4, Limit("<=", 3), until="part 4", note="why")
    assert (late.status, late.note) == ("expected", "until part 4. why")
    early = measured(3, Limit("<=", 3), until="part 4")
    assert early.status == "fails"
    assert early.note.startswith("it holds: remove its mark (until part 4)")


def test_figures_as_they_are_printed() -> None:
    printed = {95.1293: "95.13", 1428499: "1,428,499", 0.98765: "0.988", float("inf"): "inf", 3.0: "3"}
    assert {value: number(value) for value in printed} == printed


def test_intervals() -> None:
    low, high = wilson(654, 688, scale=100)  # R: binom::binom.confint(654, 688, methods = "wilson")
    assert (round(low, 2), round(high, 2)) == (93.17, 96.44)
    assert wilson(0, 300)[0] == 0
    assert middle([3.0, 1.0, 2.0]) == (2.0, (1.0, 3.0))
    assert middle(list(range(100))) == (49.5, (40, 60))


@pytest.fixture
def gates(monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """Run the command over gates that have these statuses; return its exit status."""

    def call(*statuses: str) -> int:
        rows = [Row(f"r/{at}", "r", "1", "", "<= 1", status, "", 0.0) for at, status in enumerate(statuses)]  # type: ignore[arg-type]
        monkeypatch.setattr(command, "chosen", lambda _: [])
        monkeypatch.setattr(command, "run_all", lambda _: rows)
        monkeypatch.setattr(sys, "argv", ["gates"])
        return command.main()

    return call


def test_the_exit_status(gates: Callable[..., int], capsys: pytest.CaptureFixture[str]) -> None:
    assert gates("holds", "expected", "skipped") == 0
    assert "3 gates: 1 holds, 1 expected, 1 skipped" in capsys.readouterr().out
    assert gates("holds", "fails") == 1
    assert gates("holds", "stale") == 1


def test_a_room_whose_process_dies_fails(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    some = [Gate("r/a", "r", "quick", Limit("<=", 1), lambda: Measured(0), "")]
    (row,) = command.run_room(some, tmp_path / "rows")
    assert (row.status, row.note) == ("fails", "its process ended with status 1")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keep stored answers in a folder of the test."""
    for module in (stored, ask):
        monkeypatch.setattr(module, "FOLDER", tmp_path / "answers")
    stored.answers.cache_clear()
    return tmp_path


def asked(*statements: str) -> stored.Asked:
    return [(ADD, PromptRequest(text, text, Domain.MATH, "en", {})) for text in statements]


def test_questions_go_out_and_answers_come_back(folder: Path) -> None:
    sums = asked("1 + 1", "2 + 2", "3 + 3")
    texts = [stored.rendered(*one) for one in sums]
    with pytest.raises(StaleError, match=r"3 of 3 prompts have no answer in answers/sums\.jsonl"):
        stored.answers_to("sums", texts)
    assert ask.write_batches("sums", sums, folder / "out", 2) == 3
    files = sorted((folder / "out").glob("*.txt"))
    assert [file.name for file in files] == ["sums-001.txt", "sums-002.txt"]
    for file in files:
        text = file.read_text()
        assert "You add." in text
        keys = ask.KEY.findall(text)
        replies = [f"### {key}\nthe sum of {key}\n\non two lines\n" for key in keys]
        file.with_suffix(".answers.txt").write_text("\n".join(replies))
    assert ask.take("sums", sums, folder / "out", "a model") == (3, 0)
    stored.answers.cache_clear()
    found = stored.answers_to("sums", texts)
    assert found == [[f"the sum of {stored.prompt_hash(text)}\n\non two lines"] for text in texts]
    (row, *_) = map(json.loads, (folder / "answers" / "sums.jsonl").read_text().splitlines())
    assert row["model"] == "a model"


def test_an_answer_is_stale_when_its_prompt_changes_and_is_removed(folder: Path) -> None:
    sums = asked("1 + 1")
    ask.write_batches("sums", sums, folder, 9)
    (key,) = ask.KEY.findall((folder / "sums-001.txt").read_text())
    (folder / "sums-001.answers.txt").write_text(f"### {key}\n2\n")
    ask.take("sums", sums, folder, "a model")
    stored.answers.cache_clear()
    other = asked("1 + 2")
    with pytest.raises(StaleError, match="1 of 1 prompts"):
        stored.answers_to("sums", [stored.rendered(*one) for one in other])
    assert ask.take("sums", other, folder, "a model") == (0, 1)
    assert (folder / "answers" / "sums.jsonl").read_text() == ""


def test_a_small_model_is_asked_every_vote() -> None:
    votes = {name for name in QUESTIONS if isinstance(registered(name), Vote)}
    assert set(small_model.KNOWN) == votes


def test_answers_to_known_questions_are_counted(tmp_path: Path) -> None:
    premises = registered("premises")
    assert isinstance(premises, Vote)
    words = ["SOUND", "MISSING", "UNDETERMINED", "perhaps"]
    requests = [PromptRequest(problem_id(str(at)), str(at), Domain.MATH, "en") for at in range(len(words) + 1)]
    lines = [{"problem": str(at), "text": f"So.\nVERDICT: {word}"} for at, word in enumerate(words)]
    (tmp_path / "votes.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    settings = parse_model({"kind": "recorded", "path": "votes.jsonl"}, "model")
    known = [(request, frozenset({"sound"})) for request in requests[:2]]
    known += [(request, frozenset({"missing", "contradictory", "undetermined"})) for request in requests[2:]]
    with model_session(settings, tmp_path, premises.prompt) as session:
        line = small_model.ask(premises, known, session)
    assert line.row() == "| `premises` | 5 | 0 | 3 | 2 of 3 | sound 1, missing 1, undetermined 1 | none stored |"
    assert line.unread == "So. VERDICT: perhaps"


def test_every_trainer_that_reads_an_export_is_laid_out_for_the_gate_of_exports() -> None:
    assert set(FORMATS) - set(TRAINERS) == {"open-r1"}  # it needs a TRL of before 1.0, whose call is TRL's
