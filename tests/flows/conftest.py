"""One temporary Prefect server for all tests of the flows, and one finished run of the demo."""

from __future__ import annotations

import base64
import io
import json
import shutil
import socket
import sqlite3
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import tomli_w

from curation.config.loading import set_value
from curation.publish.cards import plots
from curation.publish.cards.facts import CardFacts
from curation.storage.stages import read_json, write_json, write_parquet
from flows import cli
from flows.pipelines.by_recipe import CURATE_MATH
from flows.run.history import FILE as HISTORY
from flows.serve.access import CLIENT_KEY, new_keys
from flows.serve.server import quiet
from flows.serve.serving import serving_api
from tests.places import ROOT

DEMO = ROOT / "flows" / "recipes" / "demo_math.toml"
KEYS = new_keys()
"""Of the tests' one Prefect server."""
EMPTY = "empty.db"

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNgAAAAAgABSK+kcQAAAABJRU5ErkJggg=="


@pytest.fixture(scope="session", autouse=True)
def _one_pixel_for_each_plot() -> Iterator[None]:
    """Leave out the drawing of cards' plots, a third of a small run; `tests/curation/publish/cards` draws them."""

    def draw(_facts: CardFacts, path: Path) -> None:
        path.write_bytes(base64.b64decode(PIXEL))

    with pytest.MonkeyPatch.context() as patch:
        for name in ("draw_funnel", "draw_pass_rates"):
            patch.setattr(plots, name, draw)
        yield


@pytest.fixture(scope="session")
def prefect_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a Prefect API with an empty database."""
    home = tmp_path_factory.mktemp("prefect")
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("PREFECT_API_URL", raising=False)
        patch.setenv("PREFECT_HOME", str(home))
        with serving_api(free_port(), KEYS) as (address, _):
            with closing(sqlite3.connect(home / "prefect.db")) as made, closing(sqlite3.connect(home / EMPTY)) as copy:
                made.backup(copy)
            yield address


@pytest.fixture(scope="session")
def empty_database(prefect_server: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an empty database of Prefect, which takes a server half its start to make."""
    return next(tmp_path_factory.getbasetemp().glob(f"prefect*/{EMPTY}"))


@pytest.fixture
def under_prefect(prefect_server: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """What runs here and in child processes is shown to a Prefect API, whose address this is."""
    quiet()
    from prefect.settings import PREFECT_API_AUTH_STRING, PREFECT_API_URL, temporary_settings

    monkeypatch.setenv("PREFECT_API_URL", prefect_server)
    monkeypatch.setenv(CLIENT_KEY, KEYS.service)
    with temporary_settings({PREFECT_API_URL: prefect_server, PREFECT_API_AUTH_STRING: KEYS.service}):
        yield prefect_server


def free_port() -> int:
    """A port of the loopback interface that no process uses."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="session")
def demo_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo recipe, run once and undisturbed; do not write into it."""
    from flows.cli.commands import run_recipe

    folder = tmp_path_factory.mktemp("demo") / "run"
    run_recipe(DEMO, [], folder)
    return folder


@dataclass(frozen=True, slots=True)
class Said:
    status: int
    out: str
    err: str


def goldilocks(*arguments: str | Path, columns: int = 200) -> Said:
    """The `goldilocks` command in this process: what it writes, and its exit status."""
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        patch.setattr(sys, "argv", ["goldilocks", *map(str, arguments)])
        patch.setenv("COLUMNS", str(columns))
        try:
            cli.main()
            status = 0
        except SystemExit as end:
            status = end.code if isinstance(end.code, int) else int(end.code is not None)
    return Said(status, out.getvalue(), err.getvalue())


def refusal(*arguments: str | Path) -> str:
    said = goldilocks(*arguments)
    assert said.status == 1
    assert said.out == ""
    assert said.err.startswith("goldilocks: ")
    assert said.err.count("\n") == 1
    return said.err


OPTIONAL = (
    *("rewriting", "doubtful_rows", "review", "decontamination", "overlaps", "premises", "translation", "variants"),
    *(f"stage{n}.doubtful_verdicts" for n in (1, 2)),
)
"""Stages of a run with verdicts of people, benchmarks, translations, or a model asked beside attempts."""

STAGES = {stage.name: stage for stage in CURATE_MATH.stages}
TITLES = [stage.title for stage in CURATE_MATH.stages if stage.name not in OPTIONAL]
"""Of every run of the math pipeline, in order."""

TINY: dict[str, tuple[str, str | None, str, str]] = {
    # name: statement, reference, final answers of the weak model, and of the strong one
    "half": ("What is 17 + 25?", "42", "42 42 1 2", "42 42 1 2"),
    "strong only": ("What is 13 times 17?", "221", "1 2 3 4", "221 221 3 4"),
    "easy": ("What is the sum of 5 and 6?", "11", "11 11 11 11", "11 11 11 11"),
    "wrong label": ("What is 9 times 10?", "91", "90 90 90 1", "90 90 90 91"),
    "few": ("What is 100 minus 58?", "42", "42 42 1 2", "42"),
    "proof": ("Prove that the sum of two even numbers is even.", "see above", "", ""),
    "no reference": ("What is 5 plus 8?", None, "", ""),
    "again": ("What is  17 +  25?", "42", "", ""),
    "conflict 1": ("What is 7 times 8?", "56", "56 56 1 2", "56 56 1 2"),
    "conflict 2": ("What is 7 times 8?", "54", "", ""),
    "markup": (r"What is [bold]12[/bold] times 12? [/] \[x\] [red]", "144", "144 144 1 2", "144 144 1 2"),
}
"""A problem of every kind that the line tells apart, of 4 attempts a model; row by row as in the file."""

TINY_RECIPE = Path(__file__).with_name("tiny.toml").read_text(encoding="utf-8")


def recipe_with(*changes: str) -> str:
    """The tiny recipe without stage 2 and labels of attempts, with settings changed as by ``--set``."""
    table = tomllib.loads(TINY_RECIPE.partition("[stage2]")[0])
    for change in ('models.student.columns={problem="question", attempts="tries", text="text"}', *changes):
        set_value(table, change)
    return tomli_w.dumps(table)


@dataclass(frozen=True, slots=True)
class Tiny:
    """The tiny recipe with its inputs next to it, the folder of a run, and what that run printed."""

    recipe: Path
    folder: Path
    out: str = ""
    err: str = ""

    def copy(self, to: Path) -> Tiny:
        """Inputs and run folder once more, to be changed at will, unlocked; the copy reads the copied inputs."""
        shutil.copytree(self.recipe.parent, to / "inputs")
        shutil.copytree(self.folder, to / "run")
        settings = json.loads((to / "run" / "run.json").read_text())
        (to / "run" / "run.json").write_text(json.dumps({**settings, "recipe_folder": str(to / "inputs")}))
        return Tiny(to / "inputs" / self.recipe.name, to / "run")

    def run(self, *overrides: str) -> Said:
        """`goldilocks run` on the recipe, into the folder."""
        return goldilocks("run", self.recipe, "--out", self.folder, *(part for o in overrides for part in ("--set", o)))

    def answer_all(self) -> None:
        """Let the strong model solve the first problem always, so that the next run drops it as too easy."""
        recorded = self.recipe.parent / "strong.jsonl"
        _, *others = map(json.loads, recorded.read_text().splitlines())
        write_jsonl(recorded, [tries(*TINY["half"][:2], "42 42 42 42"), *others])

    def table(self, name: str) -> pl.DataFrame:
        return published(self.folder, name)


def published(folder: Path, name: str) -> pl.DataFrame:
    return pl.concat([pl.read_parquet(file) for file in sorted((folder / "curated" / name).glob("*.parquet"))])


def forge(file: Path, rows: pl.DataFrame) -> None:
    """Write a table in the place of another, and its hash where hashes are kept."""
    written = write_parquet(file, rows)
    if file.name.startswith("part-"):
        file.rename(file.with_name(f"part-{str(written['hash'])[:16]}.parquet"))
        return
    place = file.parents[1] / "shards" / f"{file.stem}.json"
    mark = read_json(place)
    assert mark is not None
    mark["tables"][file.parent.name].update(written)
    write_json(place, mark)


def write_jsonl(path: Path, rows: Sequence[Mapping[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def tries(statement: str, reference: str | None, finals: str) -> dict[str, Any]:
    """A row of recorded attempts; the label is what a comparison of strings would give."""
    made = [{"text": rf"We work it out: \boxed{{{one}}}", "right": one == reference} for one in finals.split()]
    return {"question": statement, "tries": made}


NEWER = {"half": "42 42 42 42", "strong only": "221 221 3 4", "easy": "11 11 11 11", "markup": "144 1 2 3"}
"""What a newer checkpoint answers: one problem became too easy, the others stay."""


def newer_policy(folder: Path, name: str = "strong@2", finals: Mapping[str, str] = NEWER) -> Path:
    """A TOML file with a recorded policy that gives these final answers, its attempts next to it."""
    write_jsonl(folder / "newer.jsonl", [tries(*TINY[problem][:2], one) for problem, one in finals.items()])
    path = folder / "newer.toml"
    path.write_text(
        f'[models.newer]\nkind = "recorded"\nname = "{name}"\npath = "newer.jsonl"\n'
        'columns = { problem = "question", attempts = "tries", text = "text" }\n'
    )
    return path


def write_tiny(folder: Path) -> Path:
    """The tiny recipe and its inputs; one label of the weak model is wrong."""
    folder.mkdir()
    problems = [{"question": statement, "final": answer} for statement, answer, _, _ in TINY.values()]
    write_jsonl(folder / "problems.jsonl", problems)
    for place, model in enumerate(("weak", "strong"), start=2):
        rows = [tries(*row[:2], row[place]) for row in TINY.values() if row[place]]
        rows[0]["tries"][1]["right"] = model == "strong"
        write_jsonl(folder / f"{model}.jsonl", rows)
    recipe = folder / "tiny.toml"
    recipe.write_text(TINY_RECIPE)
    return recipe


@pytest.fixture(scope="session")
def tiny_recipe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny(tmp_path_factory.mktemp("tiny") / "inputs")


@pytest.fixture(scope="session")
def tiny_run(tiny_recipe: Path) -> Tiny:
    """The tiny recipe, run once at the width of a usual terminal; do not write into its folder."""
    folder = tiny_recipe.parent.parent / "run"
    said = goldilocks("run", tiny_recipe, "--out", folder, columns=80)
    assert said.status == 0, said.err
    return Tiny(tiny_recipe, folder, said.out, said.err)


@pytest.fixture
def tiny_inputs(tiny_recipe: Path, tmp_path: Path) -> Tiny:
    """A copy of the tiny recipe's inputs, and the folder of a run that has not begun."""
    shutil.copytree(tiny_recipe.parent, tmp_path / "in")
    return Tiny(tmp_path / "in" / tiny_recipe.name, tmp_path / "run")


@pytest.fixture
def tiny_copy(tiny_run: Tiny, tmp_path: Path) -> Tiny:
    return tiny_run.copy(tmp_path)


def stamps(folder: Path) -> dict[str, tuple[int, int]]:
    """Each file but the history as (inode, time of the last change): a file that was written again has others."""
    files = [path for path in folder.rglob("*") if path.is_file() and path.name != HISTORY]
    return {str(file.relative_to(folder)): (file.stat().st_ino, file.stat().st_mtime_ns) for file in files}
