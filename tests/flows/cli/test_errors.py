"""How a command ends: one sentence whatever happens, a status that is not 0, and traces on demand."""

from __future__ import annotations

import errno
import os
import re
import resource
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
import typer

from curation.records import ConfigError
from flows.cli import errors
from flows.cli.entry import Commands
from tests.flows.conftest import DEMO, ROOT, goldilocks
from tests.waiting import wait_until


@pytest.fixture(autouse=True)
def _own_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


def raises(error: BaseException) -> Callable[[], None]:
    def command() -> None:
        raise error

    return command


def typed(error: BaseException) -> Callable[[], None]:
    """A command of typer that raises an error, which click might take for an abort, without its cause."""
    app = typer.Typer(cls=Commands)
    app.callback()(lambda: None)
    app.command("one")(raises(error))
    return lambda: app(["one"])


FULL, READ_ONLY = OSError(errno.ENOSPC, "No space", "/dev/b"), OSError(errno.EROFS, "Read-only", "/dev/b")
RESET = ConnectionResetError(errno.ECONNRESET, "reset")
GONE = OSError(errno.EFBIG, "File too large", "/dev/absent/goldilocks-diff-1/part")
INTERRUPTED = "goldilocks: interrupted; run the same command again to go on.\n"


@pytest.mark.parametrize(
    ("command", "status", "words"),
    [
        (raises(ConfigError("odd: \x1b[2J\x0f")), 1, "goldilocks: odd: \\x1b[2J\\x0f\n"),
        (raises(FULL), 1, "the disk is full (/dev/b); make room, and run the same command"),
        (raises(READ_ONLY), 1, "/dev/b cannot be read or written (Read-only); fix its permissions"),
        (raises(GONE), 1, "goldilocks: /dev: File too large; run the same command again to go on."),
        (raises(RESET), 1, "a file: reset; run the same command again to go on. Its"),
        (raises(KeyboardInterrupt()), 130, INTERRUPTED),
        (typed(KeyboardInterrupt()), 130, INTERRUPTED),
        (typed(EOFError("cut short")), 1, "EOFError: cut short."),
        (raises(SystemExit(2)), 2, ""),
    ],
)
def test_every_error_is_one_sentence(
    command: Callable[[], None], status: int, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert errors.ended(command) == status
    said = capsys.readouterr().err.lstrip()  # click ends the line of an interrupt first
    assert words in said
    assert said.count("\n") == int(bool(said))


def test_what_should_not_be_names_its_place_and_its_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert errors.ended(raises(ValueError("two\nlines"))) == 1
    log = tmp_path / "goldilocks" / "errors.log"
    said = capsys.readouterr().err
    assert said.startswith("goldilocks: unexpected error in test_errors.py line ")
    assert f"ValueError: two lines. Its trace is in {log}; `--debug` prints it.\n" in said
    assert "Traceback (most recent call last)" in log.read_text()


def test_debug_prints_the_trace(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(errors, "debug", True)
    assert errors.ended(raises(ConfigError("the recipe is odd."))) == 1
    said = capsys.readouterr().err
    assert "Traceback (most recent call last)" in said
    assert said.endswith("goldilocks: the recipe is odd.\n")


def limited(file_bytes: int, *arguments: str | Path) -> str:
    """Run a command that cannot write larger files; return its last line on standard error."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (file_bytes, file_bytes))

    command = [sys.executable, "-m", "flows.cli", *map(str, arguments)]
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}  # Python keeps a cut file as whole
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, preexec_fn=limit)
    assert done.returncode == 1
    return done.stderr.splitlines()[-1]


@pytest.mark.slow
def test_a_full_disk_that_polars_meets_is_one_sentence(
    tiny_recipe: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert errors.ended(lambda: pl.DataFrame({"a": [1]}).write_parquet("/dev/full")) == 1
    said = capsys.readouterr().err
    assert said == "goldilocks: the disk is full; make room, and run the same command again to go on.\n"
    out = tmp_path / "run"
    said = limited(6000, "run", tiny_recipe, "--out", out)
    assert re.match(rf"goldilocks: {out}/stages/.*\.parquet: File too large; run the same command again to", said)
    assert goldilocks("run", tiny_recipe, "--out", out).status == 0


@pytest.mark.slow
def test_a_training_that_met_a_full_disk_goes_on_as_it_advises(tmp_path: Path) -> None:
    recipe, out = ROOT / "flows" / "recipes" / "train_embedded.toml", tmp_path / "run"
    sizes = (f"collector.{name}=8" for name in ("group_size", "n_async", "n_batch"))
    small = ("steps=1", "checks=false", "evaluation={}", *sizes)
    said = limited(20_000, "train", recipe, "--out", out, *(word for change in small for word in ("--set", change)))
    assert "cannot be written" in said  # the checkpoint, by torch, which keeps no errno
    assert f"free disk space if it is full, then `goldilocks train --resume {out}`" in said
    assert "holds a run already" in goldilocks("train", recipe, "--out", out).err
    assert goldilocks("train", "--resume", out).out == f"{out / 'model'}\n"


@pytest.mark.slow
def test_a_signal_ends_a_run_with_one_sentence(tmp_path: Path) -> None:
    out = tmp_path / "run"
    command = [sys.executable, "-m", "flows.cli", "run", str(DEMO), "--set", "shard_rows=10", "--out", str(out)]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
    with subprocess.Popen(command, cwd=ROOT, env=environment, stderr=subprocess.PIPE, text=True) as process:
        wait_until((out / "stages" / "02-statements" / "shards" / "00001.json").exists, process)
        process.send_signal(signal.SIGTERM)
        assert process.stderr is not None
        said = process.stderr.read()
    assert process.returncode == 128 + signal.SIGTERM
    assert said.splitlines()[-1] == "goldilocks: ended by SIGTERM; run the same command again to go on."
    assert "Traceback" not in said


def test_an_api_that_is_down_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PREFECT_API_URL", "http://127.0.0.1:9/api")
    said = goldilocks("run", DEMO, "--out", tmp_path / "run")
    assert said.status == 1
    assert said.err.startswith("goldilocks: PREFECT_API_URL = http://127.0.0.1:9/api: no Prefect API answers there (")
