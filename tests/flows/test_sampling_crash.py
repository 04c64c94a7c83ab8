"""kill -9 while sampling: no finished attempt is lost or made again, and the decisions are those of a quiet run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from curation.storage.attempts import AttemptStore
from curation.storage.journal import Journal
from tests.curation.drawn import KEY, problems, run
from tests.flows.conftest import ROOT
from tests.waiting import wait_until


def asked(folder: Path) -> list[tuple[str, int]]:
    path = folder / "asked.txt"
    lines = path.read_text().splitlines() if path.exists() else []
    return [(problem, int(index)) for problem, index in (line.split() for line in lines)]


@pytest.mark.slow
def test_killed_while_sampling(tmp_path: Path) -> None:
    quiet, folder = tmp_path / "quiet", tmp_path / "killed"
    quiet.mkdir()
    folder.mkdir()
    wanted = run(quiet, 0.001)
    names = [one.id for one in problems()]
    held: set[tuple[str, int]] = set()
    command = [sys.executable, "-m", "tests.curation.drawn", str(folder), "0.02"]
    for requests in (20, 60):
        process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_until(lambda least=requests: len(asked(folder)) >= least, process, tick_s=0.002)
        process.kill()
        process.wait()
        rows = AttemptStore(folder / "attempts", KEY, create=False).read(names).select("problem", "index").rows()
        assert len(set(rows)) == len(rows) > 0, "double"
        assert held <= set(rows), "lost"
        held = set(rows)
        (folder / "asked.txt").rename(folder / f"asked-{requests}.txt")
    assert run(folder, 0.001).equals(wanted)
    assert not held & set(asked(folder)), "asked again for what was finished"
    found, undisturbed = (AttemptStore(one / "attempts", KEY).read(names) for one in (folder, quiet))
    assert found.equals(undisturbed)


@pytest.mark.slow
def test_a_kill_between_a_part_and_the_journal_doubles_nothing(tmp_path: Path) -> None:
    run(tmp_path, 0.001)
    store = AttemptStore(tmp_path / "attempts", KEY)
    held = store.read([one.id for one in problems()])
    journal = Journal(store.folder / "journal.jsonl", writable=True)
    journal.add(((row["problem"], row["index"]), {"text": row["text"]}) for row in held.head(30).to_dicts())
    journal.close()
    with (store.folder / "journal.jsonl").open("ab") as torn:
        torn.write(b'["p00", 99, {"text": "half a li')
    reader = AttemptStore(tmp_path / "attempts", KEY, create=False)
    assert reader.height == held.height
    assert reader.read([one.id for one in problems()]).equals(held)
    again = AttemptStore(tmp_path / "attempts", KEY)
    assert again.height == held.height
    assert not (store.folder / "journal.jsonl").exists()
