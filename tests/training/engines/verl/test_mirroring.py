"""A run by verl with a mirror: logs and model are copied, and completed by whoever goes on after a kill."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from curation.records import StoreError
from tests.training.engines.test_mirroring import marked, own
from tests.training.engines.verl.test_stages import recipe
from training.engines.processes import EngineError
from training.engines.verl.run import train


@pytest.mark.slow
def test_logs_and_model_are_copied_and_a_killed_run_completes_them(tmp_path: Path) -> None:
    there, out = tmp_path / "there", tmp_path / "run"
    table = recipe(tmp_path, steps=4, curriculum=None, storage={"mirror": str(there)})
    (out / "verl").mkdir(parents=True)
    (out / "verl" / "kill").write_text("3 before")
    with pytest.raises(EngineError):
        train(table, tmp_path, out)
    assert json.loads((there / "mirror.json").read_text()) == {"recipe": "stages"}
    assert not (there / "model").exists()
    rows = [json.loads(line)["step"] for line in (there / "metrics.jsonl").read_text().splitlines()]
    assert rows == [1, 2]
    assert (there / "run.json").read_bytes() == (out / "run.json").read_bytes()
    train(table, tmp_path, out, resume=True)
    assert marked(there, "model") == {"last": own(out / "model")}
    for name in ("run.json", "metrics.jsonl", "changes.jsonl", "summary.json"):
        assert (there / name).read_bytes() == (out / name).read_bytes()


def test_another_runs_mirror_is_refused_before_verl_starts(tmp_path: Path) -> None:
    there = tmp_path / "there"
    there.mkdir()
    (there / "mirror.json").write_text('{"recipe": "other"}')
    with pytest.raises(StoreError, match="holds a run of recipe `other`"):
        train(recipe(tmp_path, storage={"mirror": str(there)}), tmp_path, tmp_path / "run")
    assert not (tmp_path / "run").exists()
