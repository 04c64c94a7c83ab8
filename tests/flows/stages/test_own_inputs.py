"""No command writes over what it reads."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.flows.conftest import Tiny, refusal, stamps, write_jsonl

PROGRAM = {"id": "x", "tests": [], "problem": "x", "lang": "python", "code": "", "gold": "1", "text": "a", "q": "What?"}
REFUSED = "which is read by this command; give another --out."


@pytest.mark.parametrize(
    "command",
    [
        ("statements", "IN", "--out", "LINK", "--map", "statement=q"),
        ("overlap", "IN", "--against", "OTHER", "--out", "OTHER", "--field", "q"),
        ("answers", "IN", "--out", "IN"),
        ("code", "--problems", "IN", "--submissions", "OTHER", "--out", "OTHER"),
        ("language", "IN", "--out", "IN"),
    ],
)
def test_an_output_that_is_an_input_is_refused(command: tuple[str, ...], tmp_path: Path) -> None:
    places = {name: tmp_path / f"{name}.jsonl" for name in ("IN", "OTHER", "LINK")}
    for name in ("IN", "OTHER"):
        write_jsonl(places[name], [PROGRAM])
    places["LINK"].symlink_to(places["IN"])
    before = stamps(tmp_path)
    assert REFUSED in refusal("verify", *(places.get(word, word) for word in command))
    assert stamps(tmp_path) == before


def test_a_set_is_neither_exported_into_itself_nor_overwritten_by_a_comparison(tiny_copy: Tiny, tiny_run: Tiny) -> None:
    curated, before = tiny_copy.folder / "curated", stamps(tiny_copy.folder)
    for place in (curated, curated / "data", curated / "dropped", curated / "new"):
        why = refusal("export", tiny_copy.folder, "--format", "trl", "--out", place)
        assert f"{place} is, or is in, {curated}, {REFUSED}" in why
    own, kept = next((curated / "data").glob("*.parquet")), next((tiny_copy.folder / "versions").rglob("*.parquet"))
    for old, new, out in (
        (tiny_copy.folder, tiny_run.folder, own),
        (tiny_run.folder, tiny_copy.folder, own),
        (f"{tiny_copy.folder}@1", tiny_run.folder, kept),
    ):
        assert REFUSED in refusal("diff", old, new, "--out", out)
    assert stamps(tiny_copy.folder) == before


def test_a_run_does_not_read_its_own_set(tiny_copy: Tiny) -> None:
    own = next((tiny_copy.folder / "curated" / "data").glob("*.parquet"))
    mapped = ["sources.0.columns.statement=statement", "sources.0.columns.answer=answer"]
    join = {"path": str(own), "on": "question", "key": "statement", "into": "beside"}
    before = (tiny_copy.folder / "run.json").read_bytes(), own.read_bytes()
    for settings in (
        [f"sources.0.path={own}", "sources.0.kind=parquet", *mapped],
        [f"sources.0.path={own.parent.parent}", "sources.0.kind=dataset", *mapped],
        [f"sources.0.join.{name}={value}" for name, value in join.items()],
        [f'decontamination.against=[{{name="own", path="{own}", columns={{statement="statement"}}}}]'],
    ):
        stopped = tiny_copy.run(*settings)
        assert stopped.status == 1
        assert "is written by this run and cannot be its source too; give another --out." in stopped.err
    assert ((tiny_copy.folder / "run.json").read_bytes(), own.read_bytes()) == before
