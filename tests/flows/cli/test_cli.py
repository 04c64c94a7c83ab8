"""The `goldilocks` command: what it refuses before it writes anything, and the real process once from end to end."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from typer.main import get_command

from flows.cli import app
from tests.flows.conftest import DEMO, KEYS, ROOT, TITLES, Tiny, goldilocks, refusal, stamps
from tests.waiting import PATIENCE_S, wait_until


def commands(group: click.Command | None = None, name: str = "goldilocks") -> Iterator[tuple[str, click.Command]]:
    """Every command that does something, by what one types."""
    group = group or get_command(app)
    for part, inner in group.commands.items():
        if hasattr(inner, "commands"):
            yield from commands(inner, f"{name} {part}")
        else:
            yield f"{name} {part}", inner


REFUSED = {
    "stage1.band.attempt=8": "unknown key `stage1.band.attempt`; did you mean `attempts`? Allowed here: ",
    "stage1.bands.attempts=8": "unknown key `stage1.bands`; did you mean `band`? Allowed here: band, model",
    "stage1.band.attempts=eight": "`stage1.band.attempts` = 'eight': input should be a valid integer",
    "stage1.band.max_pass_rate=0.1": "stage1.band: impossible band: min_correct = 1",
    "stage2.band.min_judged=5": "stage2.band: impossible band: min_judged = 5 is more than attempts = 4",
    "models.student.kind=served": "`models.student.kind` = 'served': input should be one of 'recorded', 'vllm'",
    "sources.0.path=problem.jsonl": "school: no file at",
    "sources.0.columns.statement=problem": "no row has `problem`; there are: question, final.",
    'sources.0.columns.meta=["level"]': "no row has `level`; there are: question, final.",
    "sources.0.columns.answer={path='meta.final', take='hash'}": "no row has `meta.final`; there are: question, final.",
    "sources.0.path=tiny.toml": "tiny.toml, line 2: not JSON",
    "sources.0.kind=parquet": "problems.jsonl: not a readable parquet file",
    "models.student.path=absent.jsonl": "absent.jsonl: there is no such file",
    "models.student.path=tiny.toml": "tiny.toml: not a .jsonl, .jsonl.gz, .jsonl.zst, .parquet or .csv file",
    "models.student.columns.problem=prompt": "no row has `prompt`; there are: question, tries, tries.0.text",
    "models.strong.columns.attempts=samples": "no row has `samples`; there are: question, tries",
    "models.strong.columns.text=response": "inside `tries`: no row has `response`; there are: text, right.",
    "models.strong.columns.label=ok": "no row has `ok`; there are: text, right.",
    "models.student.columns.attempts=question": "`question` is not a list of objects",
    "seed": "--set seed: write key=value",
}


@pytest.mark.parametrize("override", REFUSED)
@pytest.mark.parametrize("dry", [False, True], ids=["run", "dry"])
def test_a_mistake_is_one_sentence_and_nothing_is_written(
    override: str, dry: bool, tiny_recipe: Path, tmp_path: Path
) -> None:
    before = stamps(tiny_recipe.parent)
    out = tmp_path / "run"
    said = goldilocks("run", tiny_recipe, "--set", override, "--out", out, *(["--dry"] if dry else []))
    assert said.status == 1
    assert said.err.startswith("goldilocks: ")
    assert said.err.count("\n") == 1
    assert REFUSED[override] in said.err
    assert not out.exists()
    assert stamps(tiny_recipe.parent) == before
    if not dry:
        assert said.out == ""


def test_a_missing_file_is_told_with_its_neighbours(tiny_recipe: Path, tmp_path: Path) -> None:
    said = refusal("run", tiny_recipe, "--set", "sources.0.path=problem.jsonl", "--out", tmp_path / "run")
    assert "holds problems.jsonl, strong.jsonl, tiny.toml, weak.jsonl." in said


def test_a_source_without_rows_is_refused(tiny_recipe: Path, tmp_path: Path) -> None:
    (tmp_path / "empty.jsonl").touch()
    said = refusal("run", tiny_recipe, "--set", f"sources.0.path={tmp_path / 'empty.jsonl'}", "--out", tmp_path / "run")
    assert "holds no rows" in said
    assert not (tmp_path / "run").exists()


def test_a_recipe_that_is_not_there_is_refused(tmp_path: Path) -> None:
    assert "absent.toml: there is no such file" in refusal("run", tmp_path / "absent.toml", "--out", tmp_path / "run")
    assert list(tmp_path.iterdir()) == []


def test_an_out_that_cannot_be_a_folder_is_refused(tiny_recipe: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert str(tmp_path / "file") in refusal("run", tiny_recipe, "--out", tmp_path / "file")
    assert str(tmp_path / "file") in refusal("run", tiny_recipe, "--out", tmp_path / "file" / "below")


def test_dry_says_what_would_be_done_and_does_nothing(
    tiny_recipe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    said = goldilocks("run", tiny_recipe, "--set", "sources.0.limit=5", "--dry")
    assert (said.status, said.err) == (0, "")
    assert f"would run curate-math in {tmp_path / 'runs' / 'tiny'}" in said.out
    assert "source school: jsonl problems.jsonl, at most 5 rows, licence MIT" in said.out
    assert "stage1: weak@1, 4 attempts a problem; kept with at least 1 correct and a pass rate up to 0.75" in said.out
    assert (
        "stage2: strong@1, 4 attempts a problem; kept with at least 1 correct and a pass rate up to 0.875" in said.out
    )
    assert re.search(r"finished there.*: nothing\n$", said.out)
    assert list(tmp_path.iterdir()) == []


def test_dry_on_a_finished_run_touches_nothing(tiny_run: Tiny) -> None:
    before = stamps(tiny_run.folder)
    said = goldilocks("run", tiny_run.recipe, "--out", tiny_run.folder, "--dry")
    assert said.status == 0
    first = "sources, statements, references, exact_dedup"
    assert re.search(f"finished there.*: {first}", said.out)
    assert stamps(tiny_run.folder) == before


@pytest.mark.parametrize("command", ["status", "explain"])
def test_a_folder_that_holds_no_run_is_one_sentence(command: str, tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "absent"):
        said = refusal(command, folder, *(["3f2a"] if command == "explain" else []))
        assert f"{folder} holds no run (no run.json); start one with `goldilocks run RECIPE --out {folder}`." in said
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("text", ["{", "{}", "[]", "3", '{"recipe": {}}', '{"recipe": 5, "recipe_folder": ""}', "\xff"])
def test_a_damaged_run_is_one_sentence(text: str, tmp_path: Path) -> None:
    (tmp_path / "run.json").write_bytes(text.encode("latin-1"))
    said = goldilocks("status", tmp_path)
    assert (said.status, said.out) == (1, "")
    assert said.err.startswith("goldilocks: ")
    assert str(tmp_path / "run.json") in said.err


def test_every_command_has_help() -> None:
    seen = []
    for typed, command in commands():
        said = goldilocks(*typed.split()[1:], "--help")
        assert said.status == 0
        assert command.help is not None
        assert " ".join(command.help.split()) in " ".join(said.out.split())
        seen += [option for parameter in command.params for option in parameter.opts if option.startswith("--")]
        assert [parameter.name for parameter in command.params if not getattr(parameter, "help", None)] == []
    assert {"--set", "--out", "--dry", "--map", "--workers"} <= set(seen)


def test_a_command_that_is_not_there_is_a_usage_error() -> None:
    for arguments in (["curate"], ["run"], ["run", "x.toml", "--sett", "a=1"], ["verify", "answers", "x", "--out", "y",
                      "--workers", "0"]):  # fmt: skip
        said = goldilocks(*arguments)
        assert (said.status, said.out) == (2, "")
        assert "Traceback" not in said.err


def outside() -> dict[str, str]:
    """The environment with no setting of the tests'."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("PREFECT_", "COLUMNS"))}


def cli(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """The command as its own process."""
    command = [sys.executable, "-m", "flows.cli", *map(str, arguments)]
    return subprocess.run(
        command, cwd=ROOT, env=outside(), capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_the_command_says_only_what_is_its_own(tiny_run: Tiny, tmp_path: Path) -> None:
    done = cli("run", tiny_run.recipe, "--out", tmp_path / "run")
    assert done.returncode == 0, done.stderr
    assert [line[:24].rstrip() for line in done.stderr.splitlines()] == TITLES
    assert "curated set and card: " in done.stdout.splitlines()[-1]
    noise = re.compile("prefect|uvicorn|flow run|task run|INFO|WARNING|ERROR|Traceback|http", re.IGNORECASE)
    assert noise.findall(done.stdout.replace(str(tmp_path), "") + done.stderr) == []
    assert files(tmp_path / "run" / "curated") == files(tiny_run.folder / "curated")


@pytest.mark.slow
def test_a_run_that_prefect_sees_says_no_more_and_publishes_the_same(
    tiny_run: Tiny, under_prefect: str, tmp_path: Path
) -> None:
    shown = {**outside(), "PREFECT_API_URL": under_prefect, **KEYS.of_client()}
    command = [sys.executable, "-m", "flows.cli", "run", str(tiny_run.recipe), "--out", str(tmp_path / "run")]
    done = subprocess.run(command, cwd=ROOT, env=shown, capture_output=True, text=True, check=True)
    assert [line[:24].rstrip() for line in done.stderr.splitlines()] == TITLES
    assert files(tmp_path / "run" / "curated") == files(tiny_run.folder / "curated")


def test_an_interrupted_run_says_how_to_go_on(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "flows.cli",
        "run",
        str(DEMO),
        "--set",
        "shard_rows=10",
        "--out",
        str(tmp_path / "run"),
    ]
    with subprocess.Popen(command, cwd=ROOT, env=outside(), stderr=subprocess.PIPE, text=True) as process:
        wait_until((tmp_path / "run" / "stages" / "02-statements" / "shards" / "00001.json").exists, process)
        process.send_signal(signal.SIGINT)
        assert process.stderr is not None
        said = process.stderr.read()
    assert process.returncode == 130
    assert said.splitlines()[-1] == "goldilocks: interrupted; run the same command again to go on."
    assert "Traceback" not in said
