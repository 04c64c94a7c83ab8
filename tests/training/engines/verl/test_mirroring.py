"""A run by verl with a mirror: logs and model are copied, and completed by whoever goes on after a kill."""

from __future__ import annotations

from pathlib import Path

import pytest

from curation.records import StoreError
from tests.training.engines.verl.test_stages import recipe
from training.engines.verl.run import train


def test_another_runs_mirror_is_refused_before_verl_starts(tmp_path: Path) -> None:
    there = tmp_path / "there"
    there.mkdir()
    (there / "mirror.json").write_text('{"recipe": "other"}')
    with pytest.raises(StoreError, match="holds a run of recipe `other`"):
        train(recipe(tmp_path, storage={"mirror": str(there)}), tmp_path, tmp_path / "run")
    assert not (tmp_path / "run").exists()
