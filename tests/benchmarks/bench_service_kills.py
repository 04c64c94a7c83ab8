"""kill -9 of `goldilocks serve`, whole or one of its processes, at random moments: does the next run complete?

    .venv/bin/python -m tests.benchmarks.bench_service_kills [--kills 100] [--seed 0]

Before each kill the problems of a small recipe change, so that the next run publishes a new version, and a run is asked
for; after a random while a part of the service is killed. Then no process of the service that ended may live for longer
than 10 s; a run that is asked for completes (the command is started again only if it was killed) and makes one new
version, whose bytes are those of an undisturbed run.
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any
from urllib.request import Request, urlopen

import psutil

from curation.storage.locks import is_locked
from flows.publish.versions import stored_versions
from flows.serve.access import KEY_FILE
from flows.serve.server import processes_of
from flows.serve.serving import SERVICE
from tests.flows.conftest import free_port, write_tiny
from tests.places import ROOT
from tests.waiting import is_alive, wait_until

KINDS = ("the command", "Prefect's server", "the runner", "a run", "the command and the runner", "the whole tree")
MAX_WAIT_S, ORPHAN_S = 8.0, 10.0
"""Longest while between asking for a run, which takes as long, and the kill; longest life of an orphan."""
COMMAND = [sys.executable, "-m", "flows.cli"]


@dataclass
class Kills:
    """What was seen, by the kind of kill."""

    made: Counter[str] = field(default_factory=Counter)
    orphans: Counter[str] = field(default_factory=Counter)
    other_bytes: Counter[str] = field(default_factory=Counter)
    other_versions: Counter[str] = field(default_factory=Counter)
    seconds: dict[str, list[float]] = field(default_factory=dict)


class Service:
    """`goldilocks serve` on one recipe, started again when it is gone."""

    def __init__(self, folder: Path, schedule: str = "") -> None:
        self.recipe, self.run, self.port = write_tiny(folder / "in"), folder / "run", free_port()
        self.recipe.write_text(self.recipe.read_text() + f"\n[schedule]\n{schedule}")
        self.problems = (folder / "in" / "problems.jsonl").read_text().splitlines(keepends=True)
        self.log = (folder / "log").open("wb")
        kept = {name: value for name, value in os.environ.items() if name != "PREFECT_API_URL"}
        self.environment = {**kept, "PREFECT_HOME": str(folder / "home"), "PYTHONPATH": str(ROOT)}
        self.command: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the command if it does not run, and wait until it serves."""
        if self.command is None or self.command.poll() is not None:
            served = ["serve", str(self.recipe), "--out", str(self.run), "--port", str(self.port)]
            self.command = subprocess.Popen(
                [*COMMAND, *served], cwd=ROOT, env=self.environment, stdout=self.log, stderr=self.log
            )
        wait_until(lambda: self.deployment() is not None, self.command, tick_s=0.1)

    def stop(self) -> None:
        if self.command is not None:
            self.command.terminate()
            self.command.wait()
        self.log.close()

    def token(self) -> str:
        return str(json.loads((self.run / "service" / "service.json").read_text())["token"])

    def write_problems(self, number: int) -> None:
        """Leave the last problem out, or not: each change makes another version of the set."""
        (self.recipe.parent / "problems.jsonl").write_text("".join(self.problems[: len(self.problems) - number % 2]))

    def ask(self) -> str | None:
        """Ask for a run, as the cron does; return its id, None if the server does not answer."""
        return self.call("id", f"deployments/{self.deployment()}/create_flow_run", {"state": {"type": "SCHEDULED"}})

    def state(self, run: str) -> str | None:
        return self.call("state_type", f"flow_runs/{run}")

    def deployment(self) -> str | None:
        return self.call("id", "deployments/name/curate-math/tiny")

    def call(self, key: str, path: str, body: Mapping[str, Any] | None = None) -> str | None:
        """Return a value of the server's answer."""
        data = json.dumps(body).encode() if body is not None else None
        headers = {"Content-Type": "application/json"}
        with suppress(OSError):
            password = (self.run / SERVICE / KEY_FILE).read_text().strip()
            headers["Authorization"] = f"Basic {base64.b64encode(password.encode()).decode()}"
        request = Request(f"http://127.0.0.1:{self.port}/api/{path}", data, headers)
        with suppress(OSError), urlopen(request, timeout=60) as reply:
            return str(json.load(reply)[key])
        return None


def victims(service: Service, kind: str) -> list[psutil.Process]:
    """Return the processes that a kind of kill takes; of a run, all are the service's engines of this moment."""
    assert service.command is not None
    everything = {psutil.Process(process): list[str]() for process in processes_of(service.token())}
    for process in everything:
        with suppress(psutil.NoSuchProcess):
            everything[process] = process.cmdline()
    command = psutil.Process(service.command.pid)
    runners = [process for process, words in everything.items() if "flows.serve.runner" in words]
    servers = [process for process, words in everything.items() if "flows.serve.server" in words]
    runs = []
    for process, words in everything.items():
        with suppress(psutil.NoSuchProcess):
            if any("spawn_main" in word for word in words) and process.parent() in runners:
                runs.append(process)
    return {
        "the command": [command],
        "Prefect's server": servers,
        "the runner": runners,
        "a run": runs,
        "the command and the runner": [command, *runners],
        "the whole tree": [command, *everything],
    }[kind]


def kill_once(service: Service, kind: str, after_s: float) -> tuple[bool, float]:
    """Kill, start again if the command is gone, and have a run complete.

    Return whether a process of what ended outlived `ORPHAN_S`, and the seconds from the kill to the completed run.
    """
    assert service.command is not None
    service.ask()
    time.sleep(after_s)
    before = [psutil.Process(process) for process in processes_of(service.token())]
    taken = victims(service, kind)
    begun = time.monotonic()
    for process in taken:
        with suppress(psutil.NoSuchProcess):
            process.send_signal(signal.SIGKILL)
    if kind.startswith("the command") or kind == "the whole tree":
        service.command.wait()
    orphans = bool(taken) and kind != "a run" and _outlive(before)
    service.start()
    asked: list[str] = []

    def completed() -> bool:
        # a server that is on its way out may take a run along, as it may an hour's cron: the next is asked for then
        if not asked or service.state(asked[-1]) in ("CRASHED", "FAILED", "CANCELLED"):
            run = service.ask()
            asked.extend([run] if run is not None else [])
            return False
        return service.state(asked[-1]) == "COMPLETED"

    wait_until(completed, service.command, tick_s=0.25)
    # a run that found the folder in use was passed over: the one from before the kill went on, and is waited for
    wait_until(lambda: not is_locked(service.run), service.command, tick_s=0.1)
    return orphans, time.monotonic() - begun


def _outlive(processes: Sequence[psutil.Process]) -> bool:
    end = time.monotonic() + ORPHAN_S
    while alive := [one for one in processes if is_alive(one)]:
        if time.monotonic() > end:
            print(f"  alive after {ORPHAN_S:.0f} s: {alive}", flush=True)
            return True
        time.sleep(0.1)
    return False


def published_bytes(run: Path) -> dict[str, bytes]:
    folder = run / "curated"
    return {str(file.relative_to(folder)): file.read_bytes() for file in sorted(folder.rglob("*.parquet"))}


def undisturbed(service: Service, folder: Path, number: int) -> dict[str, bytes]:
    """Return what an undisturbed run publishes of the problems of a number."""
    service.write_problems(number)
    command = [*COMMAND, "run", str(service.recipe), "--out", str(folder)]
    subprocess.run(command, cwd=ROOT, env=service.environment, check=True, capture_output=True)
    return published_bytes(folder)


def bench(kills: int, seed: int, kinds: Sequence[str] = KINDS) -> Kills:
    draw, seen = random.Random(seed), Kills()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        service = Service(folder)
        expected = [undisturbed(service, folder / f"undisturbed-{number}", number) for number in (0, 1)]
        try:
            for number in range(1, kills + 1):
                service.start()
                kind = kinds[number % len(kinds)]
                service.write_problems(number)
                orphans, seconds = kill_once(service, kind, draw.uniform(0.0, MAX_WAIT_S))
                seen.made[kind] += 1
                seen.orphans[kind] += orphans
                seen.other_bytes[kind] += published_bytes(service.run) != expected[number % 2]
                seen.other_versions[kind] += len(stored_versions(service.run)) != number
                seen.seconds.setdefault(kind, []).append(seconds)
                print(f"{number:>4} {kind}: a run completed after {seconds:.0f} s", file=sys.stderr, flush=True)
        finally:
            service.stop()
    return seen


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    seen = bench(options.kills, options.seed)
    print("killed: times, orphans, other bytes, other versions, median s to a run")
    for kind, seconds in seen.seconds.items():
        counts = (seen.made[kind], seen.orphans[kind], seen.other_bytes[kind], seen.other_versions[kind])
        print(f"{kind}: {', '.join(map(str, counts))}, {median(seconds):.0f}")
    return int(any(sum(counts.values()) for counts in (seen.orphans, seen.other_bytes, seen.other_versions)))


if __name__ == "__main__":
    sys.exit(main())
