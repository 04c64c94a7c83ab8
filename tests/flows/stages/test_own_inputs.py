"""No command writes over what it reads."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.flows.conftest import Tiny, refusal, write_jsonl

PAIR = {"gold": "1", "pred": "1"}
PROGRAM = {"id": "x", "tests": [], "problem": "x", "lang": "python", "code": "", "gold": "1", "text": "a", "q": "What?"}


@pytest.mark.parametrize(
    "command",
    [
        ("verify", "statements", "IN", "--out", "LINK", "--map", "statement=q"),
        ("verify", "overlap", "IN", "--against", "OTHER", "--out", "OTHER", "--field", "q"),
        ("verify", "answers", "IN", "--out", "IN"),
        ("verify", "code", "--problems", "IN", "--submissions", "OTHER", "--out", "OTHER"),
        ("verify", "language", "IN", "--out", "IN"),
    ],
)
def test_an_output_that_is_an_input_is_refused(command: tuple[str, ...], tmp_path: Path) -> None:
    places = {name: tmp_path / f"{name}.jsonl" for name in ("IN", "OTHER", "LINK")}
    for name in ("IN", "OTHER"):
        write_jsonl(places[name], [PROGRAM])
    places["LINK"].symlink_to(places["IN"])
    before = {place: place.read_bytes() for place in places.values()}
    said = refusal(*(places.get(word, word) for word in command))
    assert "which is read by this command; give another --out." in said
    assert {place: place.read_bytes() for place in places.values()} == before


def test_a_set_is_not_exported_into_itself(tiny_copy: Tiny) -> None:
    curated = tiny_copy.folder / "curated"
    for place in (curated, curated / "data", curated / "dropped", curated / "new"):
        said = refusal("export", tiny_copy.folder, "--format", "trl", "--out", place)
        assert f"{place} is, or is in, {curated}, which is read by this command; give another --out." in said


def test_a_comparison_does_not_write_over_what_it_compares(tiny_copy: Tiny, tiny_run: Tiny) -> None:
    own = next((tiny_copy.folder / "curated" / "data").glob("*.parquet"))
    kept = next((tiny_copy.folder / "versions").rglob("decisions.parquet"))
    before = own.read_bytes(), kept.read_bytes()
    for old, new, out in (
        (tiny_copy.folder, tiny_run.folder, own),
        (tiny_run.folder, tiny_copy.folder, own),
        (f"{tiny_copy.folder}@1", tiny_run.folder, kept),
    ):
        assert "which is read by this command; give another --out." in refusal("diff", old, new, "--out", out)
    assert before == (own.read_bytes(), kept.read_bytes())


def test_a_run_does_not_read_its_own_set(tiny_copy: Tiny) -> None:
    own = next((tiny_copy.folder / "curated" / "data").glob("*.parquet"))
    mapped = ["sources.0.columns.statement=statement", "sources.0.columns.answer=answer"]
    join = {"path": str(own), "on": "question", "key": "statement", "into": "beside"}
    told, before = json.loads((tiny_copy.folder / "run.json").read_text()), own.read_bytes()
    for settings in (
        [f"sources.0.path={own}", "sources.0.kind=parquet", *mapped],
        [f"sources.0.path={own.parent.parent}", "sources.0.kind=dataset", *mapped],
        [f"sources.0.join.{name}={value}" for name, value in join.items()],
        [f'decontamination.against=[{{name="own", path="{own}", columns={{statement="statement"}}}}]'],
    ):
        said = tiny_copy.run(*settings)
        assert said.status == 1
        assert "is written by this run and cannot be its source too; give another --out." in said.err
        assert json.loads((tiny_copy.folder / "run.json").read_text()) == told
    assert own.read_bytes() == before
