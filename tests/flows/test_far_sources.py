"""All commands on a recipe whose rows are in an archive at a URL, with a mirror."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path

import pytest

from tests.curation.sources.test_remote import Files
from tests.flows.conftest import Tiny, goldilocks, newer_policy, published, write_tiny


@pytest.mark.slow
def test_all_commands_read_an_archive_behind_a_url_once(
    tiny_run: Tiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    recipe, out, there = write_tiny(tmp_path / "inputs"), tmp_path / "run", tmp_path / "there"
    rows, made = tmp_path / "inputs" / "problems.jsonl", io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        archive.write(rows, "inside/problems.jsonl")
    rows.unlink()
    with Files({"/rows.zip": made.getvalue()}, {"/rows.zip": '"1"'}) as server:
        url = f"zip://inside/problems.jsonl::{server.address}/rows.zip"
        text = recipe.read_text().replace('path = "problems.jsonl"', f'path = "{url}"')
        recipe.write_text(f'{text}\n[storage]\nmirror = "{there}"\n')
        for arguments in (("run", recipe, "--dry"), ("run", recipe, "--rehearse", "0.5", "--out", tmp_path / "small")):
            said = goldilocks(*arguments)
            assert said.status == 0, said.err
        assert "nothing that it tries would fail" in said.out
        assert not there.exists()  # what is only tried is copied nowhere
        for arguments in (("plan", recipe, "--out", out, "--pilot", "2"), ("run", recipe, "--out", out)):
            said = goldilocks(*arguments)
            assert said.status == 0, said.err
        assert published(out, "data").equals(published(tiny_run.folder, "data"))
        first = published(out, "data")["id"][0]
        assert "in the curated set" in goldilocks("explain", out, first[:8]).out
        before = json.loads((there / "curated.json").read_text())["newest"]
        said = goldilocks("refresh", out, "--policy", newer_policy(tmp_path / "inputs"))
        assert said.status == 0, said.err
        newest = json.loads((there / "curated.json").read_text())["newest"]
        assert newest != before
        assert (there / "curated" / newest / "README.md").read_bytes() == (out / "curated" / "README.md").read_bytes()
        assert server.fetched == 1
