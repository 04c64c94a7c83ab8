"""What a run shows: its funnel, finished or half-way, and while it samples refusals and unreadable answers."""

from __future__ import annotations

import itertools
import json
import os
import pty
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from curation.difficulty.sampling import SamplingProgress
from curation.records import Completion
from flows.run.policy_session import ResponseWatch
from flows.run.run_folder import new_run
from flows.run.sampling_session import progress_phrase
from tests.flows.conftest import ROOT, STAGES, TINY, Tiny, goldilocks, tries, write_jsonl, write_tiny
from tests.flows.run.folders import times

FILTERS = ["Sources", "Format filter", "Reference check", "Exact dedup", "Near dedup"]
NUMBERS = re.compile(r"^(\S.*?) {2,}([\d,]+) +([\d,]+) +([\d,]+) +([\d.]*)(.*)$")


def funnel(folder: Path) -> dict[str, tuple[int, int, int, str]]:
    """The printed funnel: stage → in, kept, dropped, why; a stage that has not begun is not in it."""
    said = goldilocks("status", folder, columns=1000)
    assert (said.status, said.err) == (0, "")
    matches = [found for line in said.out.splitlines()[2:] if (found := NUMBERS.match(line))]
    return {m[1]: (*(int(m[k].replace(",", "")) for k in (2, 3, 4)), m[6].strip()) for m in matches}


def test_a_finished_funnel_adds_up_and_is_what_the_run_printed_at_its_end(tiny_run: Tiny) -> None:
    before = times(tiny_run.folder)
    printed = goldilocks("status", tiny_run.folder, columns=80).out
    assert tiny_run.out.startswith(printed)
    assert f"{len(TINY)} " in printed
    rows = funnel(tiny_run.folder)
    assert times(tiny_run.folder) == before, "it writes nothing"
    assert list(rows) == [*FILTERS, "Stage 1: difficulty", "Stage 2: difficulty", "Curated set"]
    for rows_in, kept, dropped, why in rows.values():
        assert rows_in == kept + dropped
        assert sum(int(count.replace(",", "")) for count in re.findall(r"[a-z_]+ ([\d,]+)(?:, |$)", why)) == dropped
    for before, after in itertools.pairwise([*FILTERS, "Stage 1: difficulty"]):
        assert rows[after][0] == rows[before][1]
    assert rows["Stage 2: difficulty"][0] == rows["Stage 1: difficulty"][0]
    assert rows["Curated set"][0] == rows["Stage 2: difficulty"][1]


def test_a_status_that_was_printed_before_is_read_without_heavy_modules_until_a_file_changes(
    tiny_copy: Tiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    before = goldilocks("status", tiny_copy.folder).out
    monkeypatch.setenv("COLUMNS", "200")
    code = "import sys, pathlib, flows.cli.status as s; s.show_status(pathlib.Path(sys.argv[1]))"
    code += "; sys.exit('polars' in sys.modules or 'pydantic' in sys.modules)"
    command = [sys.executable, "-c", code, str(tiny_copy.folder)]
    assert subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout == before
    assert "last `run`" in before
    (tiny_copy.folder / "history.jsonl").unlink()
    assert "last `run`" not in goldilocks("status", tiny_copy.folder).out


def test_a_half_finished_stage_shows_its_rows_so_far(tiny_copy: Tiny) -> None:
    folder = tiny_copy.folder
    whole = funnel(folder)
    for name in ("05-exact-dedup", "06-near-dedup", "10-export"):
        shutil.rmtree(folder / "stages" / name)
    for name in ("verdicts", "decisions", "curated"):
        shutil.rmtree(folder / name)
    stage = folder / STAGES["references"].folder
    (stage / "DONE.json").unlink()
    for mark in sorted(stage.glob("shards/*.json"))[2:]:
        mark.unlink()
    rows = funnel(folder)
    assert list(rows) == FILTERS[:3]
    assert [rows[name] for name in FILTERS[:2]] == [whole[name] for name in FILTERS[:2]]
    rows_in, kept, dropped, why = rows["Reference check"]
    assert "[so far: 2 of 4 shards]" in why
    assert 0 < rows_in < whole["Reference check"][0]
    assert rows_in == kept + dropped
    assert goldilocks("status", folder).out.count("not begun") >= 5


def test_rows_of_an_earlier_run_are_not_counted(tiny_copy: Tiny) -> None:
    good = [tries(f"What is {number} + 0?", str(number), f"{number}") for number in range(120)]
    write_jsonl(tiny_copy.recipe.parent / "weak.jsonl", [*good, {"question": 5, "tries": []}])
    assert tiny_copy.run("sources.0.limit=3").status == 1  # new rows come as far as the attempts, which cannot be read
    rows = funnel(tiny_copy.folder)
    assert rows["Sources"][0] == 3
    assert "Curated set" not in rows
    assert "Stage 2: difficulty" not in rows


# --- while a run samples ---------------------------------------------------------------------------------------------


def test_refusals_for_now_are_shown_while_a_run_samples() -> None:
    servers = {"busy": 2, "failed": 1, "asked_again": 3, "latency_s": 0.25}
    phrase = progress_phrase(SamplingProgress(in_flight=5, servers=servers))
    assert "5 in flight at 0.25 s, asked again 3 (429: 2, 5xx: 1)" in phrase
    assert "in flight" not in progress_phrase(SamplingProgress(in_flight=5))


BAR = """
from flows.run.progress import bar, note
with bar("Stage 1: attempts", 9000) as advance:
    advance(2000)
    note("5 min left, 1,904 attempts, 12,345 tokens/s, 1,234 kept, 567 dropped, 64 in flight at 1.2 s", 5500)
    advance(1000)
"""


def test_a_bar_counts_decided_problems_within_80_columns() -> None:
    child, terminal = pty.fork()
    if child == 0:  # pragma: no cover
        os.chdir(ROOT)
        os.execve(sys.executable, [sys.executable, "-c", BAR], {**os.environ, "COLUMNS": "80", "TERM": "xterm"})
    shown = bytearray()
    while True:
        try:
            shown += os.read(terminal, 4096)
        except OSError:  # the child has ended
            break
    _, status = os.waitpid(child, 0)
    os.close(terminal)
    text = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", shown.decode())
    assert status == 0, text
    lines = [line.strip() for line in re.split(r"[\r\n]+", text)]
    assert max(map(len, lines)) <= 80
    assert any("3,500/9,000" in line for line in lines)
    assert not any("3,000/9,000" in line for line in lines), "a finished shard never takes decided problems back"
    assert any(line.startswith("5 min left, 1,904 attempts") for line in lines)


def test_a_stage_of_questions_warns_once_if_most_answers_are_of_no_use(
    tiny_recipe: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = new_run(tiny_recipe, [], tmp_path / "run")
    run.folder.mkdir()

    def watch(texts: list[str], finish: str) -> None:
        watching = ResponseWatch(run, "premises", "student", lambda text: "VERDICT" in text)
        for number, text in enumerate(texts):
            watching.add(f"p{number % 7}", number, Completion(text, finish, 3))
        watching.close()

    watch(["VERDICT: SOUND", "hm"] * 25, "stop")
    assert not (run.folder / "metrics.jsonl").exists(), "half of them are of use"
    watch(["VERDICT: SOUND", *(f"hm {number}" for number in range(100))], "length")
    (row,) = map(json.loads, (run.folder / "metrics.jsonl").read_text().splitlines())
    assert row["stage"] == "premises"
    assert row["warning"].startswith("31 of the first 32 responses (97 %) are of no use (cut off 31): ")
    assert row["warning"].endswith('attempt 31: "hm 30"')
    assert capsys.readouterr().err == f"warning: premises: {row['warning']}\n"


RAMBLE = "I do not know how [bold]to[/bold] do this\x1b[31m, sorry"


@pytest.mark.slow
def test_a_stage_that_reads_no_answers_warns_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recipe = write_tiny(tmp_path / "in")
    weak = tmp_path / "in" / "weak.jsonl"
    rows = [json.loads(line) for line in weak.read_text().splitlines()]
    write_jsonl(weak, [{**row, "tries": [{"text": RAMBLE, "right": False}] * 4} for row in rows])
    monkeypatch.setenv("FORCE_COLOR", "1")  # the bar is drawn, and the warning is above it
    done = goldilocks("run", recipe, "--out", tmp_path / "run")
    assert done.status == 0
    metrics = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    ((stage, warning),) = [(row["stage"], row["warning"]) for row in metrics if "warning" in row]
    assert stage == "stage1.attempts"
    assert " responses (100 %) are of no use (no answer " in warning
    assert "look at `models.student.columns`" in warning
    assert warning.endswith('"I do not know how [bold]to[/bold] do this [31m, sorry"')
    assert done.err.count("warning: stage1.attempts: ") == 1
    assert warning in done.err.replace("\r", "")
    assert "stage2.attempts: " not in done.err
