"""verl's metrics under our names, while they are written, and after a run was cut off."""

from __future__ import annotations

import json
from pathlib import Path

from training.engines.verl.configuration import steps_file
from training.engines.verl.following import MetricsFollower, our_metrics
from training.evaluation.metrics import read_metrics


def test_names_are_ours_and_all_of_verls_stay() -> None:
    row = our_metrics(
        {
            "critic/score/mean": 0.5,
            "actor/goldilocks/policy/clip_low": 0.1,
            "goldilocks/sampled/pass_rate": 0.25,
            "val-core/goldilocks/acc/mean@4": 0.75,
            "timing_s/step": 2,
            "note": "text",
            "perf/mfu/actor": float("nan"),
        }
    )
    assert row["reward/total"] == 0.5
    assert (row["policy/clip_low"], row["sampled/pass_rate"], row["evaluation/pass_rate"]) == (0.1, 0.25, 0.75)
    assert (row["speed/step_s"], row["verl/timing_s/step"]) == (2.0, 2.0)
    assert "speed/peak_share" not in row


def written(out: Path, begun_at: int, *lines: str) -> None:
    """What verl's process that began after a step has written."""
    file = steps_file(out, begun_at)
    file.parent.mkdir(exist_ok=True)
    file.write_text("".join(lines))


def test_rows_are_taken_whole_and_each_step_once(tmp_path: Path) -> None:
    line = json.dumps({"step": 1, "data": {"critic/score/mean": 0.5}}) + "\n"
    with MetricsFollower(tmp_path, 5, 0) as follower:
        follower.follow()
        written(tmp_path, 0, line, '{"step": 2, "da')
        follower.follow()
        assert [row["step"] for row in read_metrics(tmp_path)] == [1]
        written(tmp_path, 0, line, '{"step": 2, "data": {}}\n{"step": 3, "data": {}}\n')
    assert [row["step"] for row in read_metrics(tmp_path)] == [1, 2, 3]
    with MetricsFollower(tmp_path, 5, 2):  # the checkpoint is of step 2
        written(tmp_path, 2, '{"step": 3, "data": {"critic/score/mean": 1}}\n')
    rows = read_metrics(tmp_path)
    assert [row["step"] for row in rows] == [1, 2, 3]
    assert rows[-1]["reward/total"] == 1.0
    with MetricsFollower(tmp_path, 5, 4):  # killed between step 4's checkpoint and its line
        written(tmp_path, 4, '{"step": 4, "data": {"val-core/goldilocks/acc/mean@4": 1}}\n')
    assert read_metrics(tmp_path)[-1]["evaluation/pass_rate"] == 1.0


def test_what_verl_wrote_after_the_last_look_of_a_killed_run_is_taken_over(tmp_path: Path) -> None:
    lines = [json.dumps({"step": step, "data": {"actor/lr": step}}) + "\n" for step in range(4)]
    with MetricsFollower(tmp_path, 5, 0):
        written(tmp_path, 0, lines[0])
    written(tmp_path, 0, *lines)  # killed here: step 2 is saved, and 3 is lost with what came after
    with MetricsFollower(tmp_path, 5, 2):
        written(tmp_path, 2, '{"step": 2, "data": {}}\n{"step": 3, "data": {"actor/lr": 7}}\n')
    told = [(row["step"], row.get("policy/learning_rate")) for row in read_metrics(tmp_path)]
    assert told == [(0, 0.0), (1, 1.0), (2, 2.0), (3, 7.0)]
