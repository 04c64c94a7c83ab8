"""kill -9 of `goldilocks serve`, whole or one of its processes, at random moments: does the next run complete?

    .venv/bin/python -m tests.benchmarks.bench_service_kills [--kills 100] [--seed 0]

A small recipe is served. Before each kill its problems change, so that the next run has a new version to publish, and a
run is asked for as its cron would; then, after a random while, one of the service is killed: the command itself,
Prefect's server, the runner, the process of a run, the command and the runner at once, or the whole tree. What must
come then: no process of the service that ended lives for longer than 10 s; a run that is asked for after the kill
completes (the command is started again where it was killed, and only there); one new version and no more, and its
published bytes are those of a run that nobody killed. It prints a line per kind of kill.
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
from tests.waiting import wait_until

KINDS = ("the command", "Prefect's server", "the runner", "a run", "the command and the runner", "the whole tree")
MOST_WAIT_S = 8.0
"""Longest while between asking for a run and the kill; a run of the recipe takes about as long on two cores."""

ORPHAN_S = 10.0
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
        """End the command."""
        if self.command is not None:
            self.command.terminate()
            self.command.wait()
        self.log.close()

    def token(self) -> str:
        """Return the token of the service that runs."""
        return str(json.loads((self.run / "service" / "service.json").read_text())["token"])

    def write_problems(self, number: int) -> None:
        """Leave the last problem out, or not: each change makes another version of the set."""
        (self.recipe.parent / "problems.jsonl").write_text("".join(self.problems[: len(self.problems) - number % 2]))

    def ask(self) -> str | None:
        """Ask for a run, as the cron does; return its id, None where nobody answers."""
        deployment = self.deployment()
        made = self.call(f"deployments/{deployment}/create_flow_run", {"state": {"type": "SCHEDULED"}})
        return made["id"] if made is not None else None

    def state(self, run: str | None) -> str:
        """Return the state of a run; empty where nobody answers."""
        told = self.call(f"flow_runs/{run}", None)
        return str(told["state_type"]) if told is not None else ""

    def deployment(self) -> str | None:
        told = self.call("deployments/name/curate-math/tiny", None)
        return str(told["id"]) if told is not None else None

    def call(self, path: str, body: Mapping[str, Any] | None) -> Any:
        data = json.dumps(body).encode() if body is not None else None
        headers = {"Content-Type": "application/json"}
        with suppress(OSError):
            key = (self.run / SERVICE / KEY_FILE).read_text().strip()
            headers["Authorization"] = f"Basic {base64.b64encode(key.encode()).decode()}"
        request = Request(f"http://127.0.0.1:{self.port}/api/{path}", data, headers)
        with suppress(OSError), urlopen(request, timeout=60) as reply:
            return json.load(reply)
        return None


def victims(service: Service, kind: str) -> list[psutil.Process]:
    """Return the processes that a kind of kill takes; of a run, all are the service's engines of this moment."""
    assert service.command is not None
    command = psutil.Process(service.command.pid)
    parts: dict[str, list[psutil.Process]] = {"flows.serve.server": [], "flows.serve.runner": []}
    everything = [psutil.Process(process) for process in processes_of(service.token())]
    for process in everything:
        with suppress(psutil.NoSuchProcess):
            words = process.cmdline()
            for name, members in parts.items():
                if name in words:
                    members.append(process)
    runners = [runner.pid for runner in parts["flows.serve.runner"]]
    return {
        "the command": [command],
        "Prefect's server": parts["flows.serve.server"],
        "the runner": parts["flows.serve.runner"],
        "a run": [process for process in everything if _is_run(process, runners)],
        "the command and the runner": [command, *parts["flows.serve.runner"]],
        "the whole tree": [command, *everything],
    }[kind]


def _is_run(process: psutil.Process, runners: Sequence[int]) -> bool:
    with suppress(psutil.NoSuchProcess):
        return process.ppid() in runners and any("spawn_main" in word for word in process.cmdline())
    return False


def kill_once(service: Service, kind: str, after_s: float) -> tuple[bool, float]:
    """Kill, start again where the command is gone, and have a run complete.

    Return whether a process of what ended outlived `ORPHAN_S`, and the seconds from the kill to the completed run.
    """
    assert service.command is not None
    service.ask()
    time.sleep(after_s)
    before = {process: psutil.Process(process).create_time() for process in processes_of(service.token())}
    taken = victims(service, kind)
    begun = time.monotonic()
    for process in taken:
        with suppress(psutil.NoSuchProcess):
            process.send_signal(signal.SIGKILL)
    is_gone = service.command in taken or kind.startswith("the command") or kind == "the whole tree"
    if is_gone:
        service.command.wait()
    ends_all = taken and kind != "a run"
    orphans = _alive_after(before, ORPHAN_S) if ends_all else False
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


def _alive_after(processes: Mapping[int, float], seconds: float) -> bool:
    end = time.monotonic() + seconds
    while alive := [one for one, created in processes.items() if _is_alive(one, created)]:
        if time.monotonic() > end:
            print(f"  alive after {seconds:.0f} s: {[psutil.Process(one).cmdline() for one in alive]}", flush=True)
            return True
        time.sleep(0.1)
    return False


def _is_alive(process: int, created: float) -> bool:
    with suppress(psutil.NoSuchProcess):
        found = psutil.Process(process)
        return found.create_time() == created and found.status() != psutil.STATUS_ZOMBIE
    return False


def published_bytes(run: Path) -> dict[str, bytes]:
    """Return the parquet files of a run's published set."""
    folder = run / "curated"
    return {str(file.relative_to(folder)): file.read_bytes() for file in sorted(folder.rglob("*.parquet"))}


def undisturbed(service: Service, folder: Path, number: int) -> dict[str, bytes]:
    """Return what a run that nobody kills publishes of the problems of a number."""
    service.write_problems(number)
    command = [*COMMAND, "run", str(service.recipe), "--out", str(folder)]
    subprocess.run(command, cwd=ROOT, env=service.environment, check=True, capture_output=True)
    return published_bytes(folder)


def bench(kills: int, seed: int, kinds: Sequence[str] = KINDS) -> Kills:
    """Kill so many times, and return what was seen."""
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
                orphans, seconds = kill_once(service, kind, draw.uniform(0.0, MOST_WAIT_S))
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
    print(f"{'killed':<28}{'times':>6}{'orphans':>9}{'other bytes':>13}{'other versions':>16}{'median s to a run':>19}")
    for kind in seen.made:
        median = sorted(seen.seconds[kind])[len(seen.seconds[kind]) // 2]
        print(
            f"{kind:<28}{seen.made[kind]:>6}{seen.orphans[kind]:>9}{seen.other_bytes[kind]:>13}"
            f"{seen.other_versions[kind]:>16}{median:>19.0f}"
        )
    return int(any(sum(counts.values()) for counts in (seen.orphans, seen.other_bytes, seen.other_versions)))


if __name__ == "__main__":
    sys.exit(main())
