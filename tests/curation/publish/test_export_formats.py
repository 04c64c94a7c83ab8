"""Sets for other trainers: each format is read back through `datasets`, and says what the curated set says."""

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from curation.config import EndpointModel
from curation.prompts import SOLVE
from curation.prompts.asked import asked_by
from curation.publish.export import CURATED
from curation.publish.export_formats import FORMATS, ExportResult, export_set, writing
from curation.records import JUDGING, TEST, Domain, PromptRequest, SourceError
from curation.verify.programs.files import problem_of_row, read_problems
from tests.curation.tables import frame
from tests.curation.verify.programs.corpus import PROBLEMS, write_set
from tests.flows.conftest import goldilocks

COMMON = {"domain": "math", "source": "school", "pass_rate": 0.25, "correct": 4, "judged": 16}
FRENCH = "Combien font $\\frac12 + \\frac12$ ? « Un »"
MATH = {**COMMON, "id": "m1", "statement": FRENCH, "answer": "\\frac{2}{2}", "lang": "fr"}
OTHER = {**COMMON, "id": "m2", "statement": "What is 2 + 2?", "answer": "4", "lang": "en"}
PYTHON = {"domain": "code", "answer": None, "meta": '{"language": "python"}'}
PROGRAM = {**OTHER, **PYTHON, "id": "c1", "statement": "Print the number you read."}
TESTS = [{"input": "1\n", "output": "1\n"}, {"input": "é\n", "output": "é\n"}]


def curated(folder: Path, *rows: dict[str, Any]) -> Path:
    """A published set in two files, with the tests of c1."""
    grouped = [{"group": row["id"], **row} for row in rows]
    numbered = ({"index": 1 - at, **test} for at, test in enumerate(reversed(TESTS)))
    tables = {
        "data/train-00000-of-00002": frame(CURATED, *grouped[:1]),
        "data/train-00001-of-00002": frame(CURATED, *grouped[1:]),
        "tests/00000": frame(TEST, *numbered, problem="c1", origin="public"),
        "judging/00000": frame(JUDGING, {"problem": "c1"}),
    }
    for name, table in tables.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        table.write_parquet(folder / f"{name}.parquet")
    return folder


def loaded(exported: ExportResult) -> list[dict[str, Any]]:
    """The rows as the trainers' own loader gives them."""
    import datasets

    if exported.file.is_dir():
        found = datasets.load_from_disk(str(exported.file))
    else:
        kind = "json" if exported.file.suffix == ".jsonl" else "parquet"
        found = datasets.load_dataset(kind, data_files=str(exported.file), split="train")
    assert found.num_rows == exported.rows
    return list(found)


def chat(row: dict[str, Any]) -> list[dict[str, str]]:
    details = {"language": "python"} if row["domain"] == "code" else {}
    asked = PromptRequest(row["id"], row["statement"], Domain(row["domain"]), row["lang"], details)
    return [dict(message) for message in SOLVE.messages(asked)]  # type: ignore[arg-type]


@pytest.fixture
def mixed(tmp_path: Path) -> Path:
    return curated(tmp_path / "curated", MATH, OTHER, PROGRAM)


def test_each_trainers_own_columns(mixed: Path, tmp_path: Path) -> None:
    tests = {"inputs": ["1\n", "é\n"], "outputs": ["1\n", "é\n"]}
    math, _, code = loaded(export_set(mixed, "verl", tmp_path / "verl"))
    assert (math["prompt"], math["data_source"], math["ability"]) == (chat(MATH), "goldilocks", "math")
    assert math["reward_model"] == {"style": "rule", "ground_truth": "\\frac{2}{2}"}
    assert (math["extra_info"]["split"], math["extra_info"]["index"]) == ("train", 0)
    assert json.loads(code["reward_model"]["ground_truth"]) == tests
    math, _, code = loaded(export_set(mixed, "trl", tmp_path / "trl"))
    assert (math["solution"], code["solution"], math["tests"]) == ("\\boxed{\\frac{2}{2}}", None, None)
    assert json.loads(code["tests"]) == tests
    math, _, code = loaded(export_set(mixed, "open-r1", tmp_path / "open-r1"))
    assert (math["problem"], math["prompt"]) == (MATH["statement"], chat(MATH))
    assert (math["solution"], code["solution"]) == ("\\boxed{\\frac{2}{2}}", None)


POLICY = {"kind": "endpoint", "model": "m", "revision": "1", "urls": ("http://localhost:1/v1",), "thinking": "[THINK]"}


INSIDE = {"verl": "extra_info", "verifiers": "info", "slime": "metadata", "skyrl": "extra_info"}
"""Where rows of a format say what they are about, if not in columns."""


@pytest.mark.parametrize("form", FORMATS)
def test_rows_of_each_format_ask_and_say_what_the_set_does_and_its_readme_names_what_is_beside_them(
    form: str, mixed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, system = tmp_path / "out", "Solve it, in [THINK] and [/THINK]."
    policy = EndpointModel.model_validate({**POLICY, "prompt": {"file": "p.txt", "text": system}})
    (mixed / "asked.json").write_text(asked_by(policy, "boxed"))
    exported = export_set(mixed, form, out)
    rows, readme = loaded(exported), (out / "README.md").read_text()
    row = rows[0]
    if form == "nemo-rl":
        assert exported.system_prompt is not None
        assert exported.system_prompt.read_text() == system
    else:
        named = row.get("prompt") or row.get("messages") or row.get("input") or row["responses_create_params"]["input"]
        messages = json.loads(named) if isinstance(named, str) else named
        assert messages[0] == {"role": "system", "content": system}
    for said in ("`file@", "`thinking = '[THINK]'` and `response_format = 'boxed'`", "goldilocks-rl"):
        assert said in readme
    assert "{folder}" not in readme
    for file in out.rglob("*.py"):
        compile(file.read_text(), file, "exec")
        assert file.stem.replace("_", "-") in readme or str(file.parent) in readme or file.name in readme
    about = [one if form not in INSIDE else one[INSIDE[form]] for one in rows]
    about = [json.loads(one) if isinstance(one, str) else one for one in about]
    assert [one["id"] for one in about] == ["m1", "m2", "c1"]
    assert [(one["pass_rate"], one["correct"], one["judged"]) for one in about] == [(0.25, 4, 16)] * 3
    monkeypatch.setattr(writing, "ROWS_AT_ONCE", 1)  # math and programs have other columns without a value
    in_parts = export_set(mixed, form, tmp_path / "parts")
    assert loaded(in_parts) == rows
    if exported.file.suffix == ".parquet":
        assert pl.read_parquet_schema(in_parts.file) == pl.read_parquet_schema(exported.file)


def test_a_set_that_does_not_say_how_it_was_asked_is_named(mixed: Path, tmp_path: Path) -> None:
    (mixed / "asked.json").write_text('{"prompt": "solve"}')
    with pytest.raises(SourceError, match=r"asked\.json does not state how problems were asked"):
        export_set(mixed, "verl", tmp_path / "out")


@pytest.mark.parametrize(
    ("row", "form", "message"),
    [
        ({**MATH, "answer": None}, "verl", "row 0, problem m1: has no reference answer"),
        ({**PROGRAM, "id": "c9"}, "trl", "row 0, problem c9: a code problem without tests"),
        (MATH, "rllm", "'rllm' is not known; known are verl"),
    ],
)
def test_what_a_format_cannot_carry_is_refused(row: dict[str, Any], form: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=message):
        export_set(curated(tmp_path / "curated", row), form, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_where_the_scorer_is_yours_the_row_tells_all(tmp_path: Path) -> None:
    import datasets

    curated = write_set(tmp_path / "curated")
    known = {name: one for name, one in read_problems(PROBLEMS).items() if one.lang is not None}
    for row in loaded(export_set(curated, "areal", tmp_path / "out")):
        held, judging = json.loads(row["tests"]), json.loads(row["judging"])
        pairs = zip(held["inputs"], held["outputs"], strict=True)
        tests, name = [{"input": given, "output": wanted} for given, wanted in pairs], row["id"]
        found = problem_of_row({"id": name, "tests": tests, **judging}, "here")
        assert found == known[name]
    assert datasets.load_from_disk(str(tmp_path / "out"))["train"].num_rows == len(known)  # the folder as a whole


def test_rows_that_fail_their_proof_are_named_and_left_out(tmp_path: Path) -> None:
    planted = [{"id": "m3", "answer": "\\frac{1}{"}, {"id": "m4", "accepted": ["5"]}]
    wrong = {**PROGRAM, "solution": "print(0)"}
    folder = curated(tmp_path / "curated", MATH, *({**OTHER, **row} for row in planted), wrong)
    said = goldilocks("export", folder, "--format", "verl", "--check", "--out", tmp_path / "out")
    assert said.status == 0, said.err
    assert "1 problems that pass their proof: " in said.out
    for line in ("m3: its reference earns 0.0", "m4: a near miss earns 1.0", "c1: its reference earns 0.0"):
        assert line in said.out
