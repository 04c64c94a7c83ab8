"""A run's folder: whose it is, also after settings were renamed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from curation.records import ConfigError, StoreError
from flows.run.run_folder import new_run, open_run


def test_a_folder_of_before_a_renaming_is_still_that_of_its_recipe(tiny_recipe: Path, tmp_path: Path) -> None:
    run = new_run(tiny_recipe, [], tmp_path / "run")
    run.folder.mkdir()
    run.save()
    file = run.folder / "run.json"
    stored = json.loads(file.read_text())
    del stored["recipe_hash"]  # as a run of before it was noted
    stored["recipe"]["near_duplicates"] = stored["recipe"].pop("near_dedup")
    file.write_text(json.dumps(stored))
    with pytest.raises(ConfigError, match="unknown key `near_duplicates`; did you mean `near_dedup`"):
        open_run(run.folder)
    run.check_owner()  # so the recipe can be run there again, and keeps its attempts
    stored["recipe"]["name"] = "another"
    file.write_text(json.dumps(stored))
    with pytest.raises(StoreError, match="holds a run of recipe `another`, not `tiny`"):
        run.check_owner()
    run.save()
    file.write_text(file.read_text().replace('"seed": 0', '"seed": 1', 1))
    with pytest.raises(StoreError, match=r"run\.json is damaged \(its recipe is not what was written"):
        open_run(run.folder)
    file.write_text("{}")
    with pytest.raises(StoreError, match="is damaged"):
        run.check_owner()
