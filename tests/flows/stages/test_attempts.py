"""When an engine is started, and when not."""

from __future__ import annotations

import json
from pathlib import Path

from tests.flows.conftest import goldilocks, write_jsonl, write_tiny


def test_a_stage_that_no_problem_reached_starts_no_engine(tmp_path: Path) -> None:
    recipe = write_tiny(tmp_path / "in")
    rows = [json.loads(line) for line in (tmp_path / "in" / "problems.jsonl").read_text().splitlines()]
    write_jsonl(tmp_path / "in" / "problems.jsonl", [{**row, "final": None} for row in rows])
    (tmp_path / "in" / "broken").mkdir()
    for name in ("config.json", "model.safetensors"):
        (tmp_path / "in" / "broken" / name).write_text("{}")
    said = goldilocks("run", recipe, "--out", tmp_path / "run", "--set", 'models.student={kind="torch",model="broken"}')
    assert said.status == 1
    assert "no problem is left for the set" in said.err
