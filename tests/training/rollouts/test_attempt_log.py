"""The texts of a run: written once each, cut back to a checkpoint, read whole while they are written."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import polars as pl
import pytest

from curation.policies.checkpoints import folder_revision
from curation.policies.completions import TokenCompletion
from curation.records import ATTEMPT, VERDICT, Domain, Outcome, PromptRequest, StoreError
from tests.training.optimisation.test_trainer import recipe
from training.config import RewardSettings
from training.embedded_model import WEIGHTS
from training.recipe import AttemptStoring
from training.rewards import Reward
from training.rollouts.attempt_log import (
    AttemptLog,
    attempt_tables,
    count_attempts,
    read_attempts,
    rollout_origin,
    verdict_tables,
)
from training.rollouts.rollouts import Rollout
from training.rollouts.tasks import TrainingTask
from training.rollouts.verifiers import Verifiers

TASK = TrainingTask(PromptRequest("p1", "What is 17 + 25?", Domain.MATH, "en"), "42")


def rollout(text: str = "<think></think>\\boxed{42}", outcome: Outcome | None = Outcome.CORRECT) -> Rollout:
    completion = TokenCompletion((1,), (5, 6, 7), (-0.1, -0.2, -0.3), (3, 3, 4), text, "stop")
    answer = "42" if outcome is Outcome.CORRECT else None
    return Rollout("p1", completion, Reward(), outcome, "number" if outcome else "no boxed answer", answer)


def log(run: Path, kept_parts: Sequence[str] = (), storing: AttemptStoring = "texts") -> AttemptLog:
    verifiers = Verifiers([TASK], 1, RewardSettings())
    verifiers.__enter__()  # it starts no process before it judges
    made = recipe(attempt_store=storing, evaluation={"attempts": 2})
    return AttemptLog(run, made, WEIGHTS, verifiers, kept_parts)


def record(written: AttemptLog, group: int, count: int = 4, text: str | None = None) -> None:
    for index in range(count):
        made = rollout(text or f"group {group}, attempt {index}")
        written.record(TASK, made, index, rollout_origin("training", 2, 3, made, group))


def test_what_is_recorded_is_read_back_with_its_origin_and_its_verdict(tmp_path: Path) -> None:
    with log(tmp_path) as written:
        first, broken = rollout(), rollout("I\ud800 think\x00", None)
        written.record(TASK, first, 1, rollout_origin("training", 2, 3, first, 57))
        written.record(TASK, broken, 0, rollout_origin("evaluation", 5, 5, broken, 2**40))
    row, held_out = read_attempts(tmp_path).to_dicts()
    policy = f"weights@{folder_revision(WEIGHTS)}+training:test"
    wanted = {"problem": "p1", "policy": policy, "prompt": "plain@1", "index": 57 * 4 + 1}
    wanted |= {"text": "<think></think>\\boxed{42}", "answer": None, "finish": "stop", "tokens": 3, "label": None}
    wanted |= {"token_ids": None, "logprobs": None, "purpose": "training", "step": 2, "version": 3}
    wanted |= {"newest_version": 4, "rollout_group": 57, "sampling": row["sampling"]}
    assert {name: row[name] for name in ATTEMPT} == wanted
    assert held_out["text"] == "I? think\x00"
    assert (held_out["index"], held_out["version"], held_out["rollout_group"]) == (5 * 2, 5, 2**40)
    assert held_out["sampling"] != row["sampling"]
    verdicts = pl.concat(verdict_tables(tmp_path))
    assert verdicts.schema == VERDICT
    shown = verdicts.sort("index").select("index", "reference", "outcome", "answer", "answer_class", "method")
    assert shown.rows() == [(10, "42", None, None, None, "no boxed answer"), (229, "42", "correct", "42", 0, "number")]
    assert count_attempts(tmp_path) == {"training": 1, "evaluation": 1}
    assert json.loads(next((tmp_path / "attempts").glob("*/key.json")).read_text())["kind"] == "training"


def test_a_resumed_run_keeps_what_its_checkpoint_names_and_no_more(tmp_path: Path) -> None:
    with log(tmp_path) as written:
        record(written, 0)
        early = written.checkpoint().result()
        record(written, 1)
        late = written.checkpoint().result()
        record(written, 2)  # in the journal when the run was killed
    assert read_attempts(tmp_path, ["rollout_group"])["rollout_group"].unique().sort().to_list() == [0, 1, 2]
    assert set(early) < set(late)
    with log(tmp_path, late) as resumed:
        record(resumed, 2, text="again")
        assert set(resumed.checkpoint().result()) > set(late)
    kept = read_attempts(tmp_path, ["rollout_group", "text"])
    assert kept.filter(rollout_group=2)["text"].to_list() == ["again"] * 4
    with log(tmp_path, early, storing="none") as resumed:  # from an older checkpoint; it keeps no more
        record(resumed, 1)
        assert resumed.checkpoint().result() == early
    assert read_attempts(tmp_path, ["index"])["index"].to_list() == [0, 1, 2, 3]
    assert sum(table.height for table in verdict_tables(tmp_path)) == 4
    with log(tmp_path):  # from the beginning
        pass
    assert count_attempts(tmp_path) == {}
    with pytest.raises(StoreError, match="keeps no attempts"):
        read_attempts(tmp_path)


def test_reading_goes_on_while_attempts_are_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("training.rollouts.attempt_log._TOGETHER", 1)
    with log(tmp_path) as written:
        record(written, 0)
        written.checkpoint().result()
        record(written, 1)
        tables = attempt_tables(tmp_path, ["problem", "index"])
        first = next(tables)  # a part; the journal was read before it
        written.checkpoint().result()
        record(written, 2)
        rest = list(tables)
    indices = [index for table in (first, *rest) for index in table["index"].to_list()]
    assert sorted(indices)[:8] == list(range(8))
    assert len(indices) == len(set(indices))


def test_a_disk_that_takes_nothing_ends_the_run_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "attempts").write_text("a file in place of the folder")
    message = r"attempts cannot be written .*attempt_store = \"none\""
    with pytest.raises(StoreError, match=message), log(tmp_path) as written:
        record(written, 0)
