"""The page in a real browser: reviewed by keyboard over the server's death, hostile rows, narrow windows, axe-core.

The browser is the system's Chromium (`apt-get install chromium`, as `.ci/run` does), driven by Playwright (the extra
`browser`, which `make setup` installs); without them these tests skip. They wait for what must come, never for a while.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from flows.pipelines.run_tables import stored_plan
from flows.run.progress import read_metrics
from flows.run.run_folder import open_run
from tests.benchmarks.bench_page import make_run
from tests.flows.page.conftest import planted_rows
from tests.flows.solver import Solver, write_recipe
from tests.places import ROOT
from tests.waiting import wait_until

PATIENCE_S = 180.0
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine: apt-get install chromium"),
    pytest.mark.skipif(find_spec("playwright") is None, reason="no Playwright here: pip install -e .[browser]"),
]
COMMAND = [sys.executable, "-m", "flows.cli"]
SLOW_S = 15
"""Longest wait for a slow answer: a run writes how far it is when answers come."""
TABS = ("", "rows", "review")
GRAVE = ("serious", "critical")
ITEM = "#item [data-problem]"
SHOWN = "document.querySelector('#item [data-problem]')?.dataset.problem"


class Served:
    """The command that serves a page; started again, it takes the port that it had."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._port = folder, "0"

    def start(self) -> Served:
        command = [*COMMAND, "page", str(self._folder), "--port", self._port]
        self.process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
        self.address = self.process.stdout.readline().split()[1].rstrip("/")
        self._port = self.address.rpartition(":")[2]
        return self

    def kill(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()

    __enter__, __exit__ = start, kill


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        arguments = ["--disable-dev-shm-usage", *(["--no-sandbox"] if os.geteuid() == 0 else [])]
        opened = playwright.chromium.launch(executable_path=CHROMIUM, args=arguments, timeout=1000 * PATIENCE_S)
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def served(planted_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server that all tests share that decide nothing."""
    folder = tmp_path_factory.mktemp("served") / "run"
    shutil.copytree(planted_run, folder)
    with Served(folder) as server:
        yield server


@contextmanager
def window(browser: Any, *, quiet: bool = True) -> Iterator[Any]:
    """A window of the browser; a quiet one's console and scripts must not complain."""
    context = browser.new_context()
    context.set_default_timeout(1000 * PATIENCE_S)
    page = context.new_page()
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    yield page
    context.close()
    assert not quiet or complaints == []


def begin_review(page: Any, served: Served) -> str:
    page.goto(f"{served.address}/r/run/review")
    page.fill("#reviewer", "Ada")
    page.press("#reviewer", "Enter")
    page.wait_for_selector(ITEM)
    return str(page.get_attribute(ITEM, "data-problem"))


def press(page: Any, key: str) -> str:
    """Press a key on an item, wait for the next one, and return the problem that was decided."""
    before = str(page.get_attribute(ITEM, "data-problem"))
    page.keyboard.press(key)
    page.wait_for_function(f"name => {SHOWN} !== name", arg=before)
    return before


def written(folder: Path) -> list[dict[str, Any]]:
    path = folder / "review.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def test_labels_are_judged_by_keyboard_also_over_the_death_of_server_and_tab(browser: Any, planted_copy: Path) -> None:
    with Served(planted_copy) as served, window(browser, quiet=False) as page:
        begin_review(page, served)
        rights = {wrong: right for _, wrong, right in planted_rows()}
        decided = [press(page, key) for key in "rx"]
        page.keyboard.press("u")
        page.wait_for_function(f"name => {SHOWN} === name", arg=decided.pop())
        shown = str(page.get_attribute("[data-key=a]", "data-answer"))
        page.keyboard.press("m")
        page.keyboard.type("computed by hand")
        page.keyboard.press("Escape")
        page.keyboard.press("e")
        page.fill("#answer", rights[shown])
        served.kill()  # before the verdict is sent
        before = str(page.get_attribute(ITEM, "data-problem"))
        page.keyboard.press("Enter")
        page.wait_for_function(
            "() => Object.keys(localStorage).some(key => key.endsWith('outbox') && localStorage[key] !== '[]')"
        )
        address = page.url
        context = page.context
        page.close()  # and the tab dies too
        served.start()
        page = context.new_page()
        page.goto(address)
        wait_until(lambda: len(written(planted_copy)) == 4, served.process)
        page.wait_for_selector(ITEM)
        decided.append(before)
        decided += [press(page, key) for key in "ax"]
        kept = {line["problem"]: line for line in written(planted_copy) if line["verdict"] != "undo"}
        assert list(kept) == decided
        assert kept[before] == {
            **{"problem": before, "verdict": "accept", "answer": rights[shown]},
            **{"reviewer": "Ada", "note": "computed by hand"},
        }
        assert [kept[name]["verdict"] for name in decided] == ["accept", "accept", "accept", "reject"]


def test_no_text_of_a_row_or_a_model_ever_runs(browser: Any, served: Served) -> None:
    with window(browser) as page:
        name = begin_review(page, served)
        for path in (*TABS, "rows?stage=statements", f"rows/{name}"):
            page.goto(f"{served.address}/r/run/{path}")
            page.wait_for_load_state()
            assert page.evaluate("window.hacked") is None, path
            foreign = page.evaluate(
                "document.querySelectorAll('main img, main iframe, main object, main script').length"
            )
            assert foreign == (2 if path == "" else 0)
        for number, tab in enumerate(TABS, start=1):
            page.keyboard.press("g")
            page.keyboard.press(str(number))
            page.wait_for_url(f"{served.address}/r/run/{tab}")
            page.wait_for_selector("nav a[aria-current=page]")
            page.keyboard.press("Escape")  # out of the field for the reviewer's name


def test_every_tab_is_readable_at_400_pixels_light_and_dark(browser: Any, served: Served) -> None:
    with window(browser) as page:
        page.set_viewport_size({"width": 400, "height": 800})
        axe = find_spec("axe_core_python")
        script = Path(axe.origin).with_name("axe.min.js") if axe is not None and axe.origin is not None else None
        name = begin_review(page, served)
        for tab in ("review", "", "rows", f"rows/{name}"):
            if tab != "review":
                page.goto(f"{served.address}/r/run/{tab}")
            assert page.evaluate("document.documentElement.scrollWidth") <= 400, tab
            if script is None:
                continue
            page.evaluate(script.read_text(encoding="utf-8"))
            for scheme in ("light", "dark"):
                page.emulate_media(color_scheme=scheme)
                found = [one for one in page.evaluate("axe.run()")["violations"] if one["impact"] in GRAVE]
                assert [(one["id"], one["nodes"][0]["html"]) for one in found] == [], (tab, scheme)


class HeldSolver(Solver):
    """Solves sums at once, from some number on slowly, until it is let go on."""

    def __init__(self) -> None:
        super().__init__(0.5)
        self.at_once, self.goes_on = sys.maxsize, threading.Event()

    def solve(self, prompt: str, seed: int) -> str:
        if self.requests > self.at_once:
            self.goes_on.wait(SLOW_S)
        return super().solve(prompt, seed)


def test_a_run_is_watched_from_its_middle_to_its_end_without_a_touch(browser: Any, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    with HeldSolver() as solver:
        changes = ("stage1.band.attempts=8", "models.student.in_flight=8")
        words = [str(write_recipe(tmp_path, 40, [solver.table("weak")], *changes)), "--out", str(folder)]
        plan = [*COMMAND, "plan", *words, "--pilot", "4"]
        subprocess.run(plan, cwd=ROOT, check=True, capture_output=True)  # the browser's loop runs in this process
        solver.at_once = solver.requests + 60  # the pilot was not held
        pipes = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        run = subprocess.Popen([*COMMAND, "run", *words], cwd=ROOT, **pipes)
        with run, Served(folder) as served, window(browser) as page:
            wait_until(lambda: any("problems" in row for row in read_metrics(folder)), run)
            page.goto(f"{served.address}/r/run/")
            page.wait_for_selector("text=in flight")
            shown = page.inner_text("#live")
            assert f"planned {stored_plan(open_run(folder))['stage1'].attempts} attempts" in shown
            for part in ("running", "of 40 problems", "tokens/s"):
                assert part in shown
            solver.goes_on.set()
            page.wait_for_selector("text=; took ")  # planned beside actual
            page.wait_for_selector("text=finished")
            page.wait_for_selector("text=Curated set")
            assert run.wait() == 0


def test_many_rows_are_paged_sorted_narrowed_and_searched(browser: Any, tmp_path: Path) -> None:
    folder, rows = tmp_path / "run", 7_000
    make_run(folder, rows)
    files = sorted((folder / "stages").glob("*/kept/*.parquet"))
    texts = pl.read_parquet(files, columns=["statement", "lang"])
    has_words = pl.col("statement").str.contains("triangle") & pl.col("statement").str.contains("candles")
    with Served(folder) as served, window(browser) as page:
        page.goto(f"{served.address}/r/run/rows")
        assert page.inner_text("h1") == f"Rows {rows:,}"
        first = page.inner_text("ol.rows li:first-child")
        page.keyboard.press("n")
        page.wait_for_selector("text=page 2 of 140")
        assert page.inner_text("ol.rows li:first-child") != first
        page.keyboard.press("/")
        page.keyboard.type("triangle CANDLES")
        page.keyboard.press("Enter")
        page.wait_for_url("**words=triangle**")
        found = texts.filter(has_words)
        assert page.inner_text("h1") == f"Rows {found.height:,} of {rows:,}"
        page.click("summary:has-text('Language')")
        page.click("aside a[href*='lang=de']")
        page.wait_for_url("**lang=de**")
        assert page.inner_text("h1") == f"Rows {found.filter(pl.col('lang') == 'de').height:,} of {rows:,}"
        page.select_option("select[name=sort]", "longest")
        page.wait_for_url("**sort=longest**")
        longest = found.filter(pl.col("lang") == "de")["statement"].str.len_chars().max()
        assert len(page.inner_text("ol.rows li:first-child .text").replace(" …", "")) >= min(240, int(longest))
