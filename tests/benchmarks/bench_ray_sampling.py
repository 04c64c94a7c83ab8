"""Sampling on Ray at size: fake servers, two nodes of which one is killed, and the same run without Ray.

    .venv/bin/python -m tests.benchmarks.bench_ray_sampling [--problems 20000] [--samples 1 16] [--no-kill]
        [--leave-out ray|alone]

Two nodes of Ray on this machine, one core each, with an asking actor on either. `goldilocks run` is a process of its
own beside them: all stages of the math pipeline on made sums, 16 attempts a problem, no early stopping. The servers
answer at once with 200 words and a box, right or wrong by the request's seed and the problem. Once half of the attempts
are made the second node is killed, and nothing takes its place.

Printed as it goes: attempts, attempts a second since the line before, and memory of the run's process and of all
processes of Ray (resident, less what is shared: Ray's object store is bounded by itself). In the end: CPU seconds per
1,000 attempts by who spent them, what the servers were asked beyond one request for each (which is what the dead node
was asking), the peak that each later stage left, and whether set and store are the bytes of a run without Ray. Wall
times lie on a busy machine; CPU seconds less.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import psutil

from tests.benchmarks.instant_server import answer_at_once

ATTEMPTS = 16
RECIPE = """
name = "on-ray"
workers = 1
shard_rows = {shard_rows}
[[sources]]
name = "sums"
kind = "jsonl"
path = "sums-{problems}.jsonl"
license = "MIT"
columns = {{ statement = "question", answer = "final" }}
[near_dedup]
enabled = false
[stage1]
band = {{ attempts = 16, max_pass_rate = 1.0 }}
sampling = {{ early_stopping = false, samplers = 2 }}
[stage1.policy]
kind = "endpoint"
model = "m"
revision = "1"
prompt = "plain"
samples_per_request = {samples}
urls = [{urls}]
decoding = {{ max_tokens = 4096 }}
"""
MODELS = b'{"data": [{"id": "m", "max_model_len": 32768}]}'
NUMBER = re.compile(r"What is (\d+) plus")
TEXT = "thinking " * 200 + "\\boxed{%d}"


def _answer(asked: dict[str, Any]) -> bytes:
    """Return the response to a request: right where the seed says so, by a rate that is the problem's own."""
    content = asked["messages"][-1]["content"] if "messages" in asked else asked["prompt"]
    found = NUMBER.search(content)
    number = int(found.group(1)) if found is not None else 0
    tokens = {"token_ids": [1] * 8} if asked.get("return_token_ids") else {}
    choices = []
    for index in range(int(asked.get("n", 1))):
        mixed = ((int(asked.get("seed", 0)) + index) * 2654435761) >> 7
        is_right = mixed % 17 < number % 18
        text = TEXT % (4 * number if is_right else mixed % 5)
        message = {"role": "assistant", "content": text}
        choices.append({"index": index, "finish_reason": "stop", "message": message, "text": text, **tokens})
    return json.dumps({"choices": choices, "usage": {"prompt_tokens": 40, "completion_tokens": 210}}).encode()


def serve(port: Connection) -> None:
    """Answer whatever comes, until killed; ``port`` receives the port. ``/asked`` tells how much was asked for."""
    asked_for = 0

    def content_for(head: bytes, body: bytes) -> bytes:
        nonlocal asked_for
        if head.startswith(b"GET"):
            return str(asked_for).encode() if b"/asked" in head.split(b"\r\n", 1)[0] else MODELS
        asked = json.loads(body)
        asked_for += int(asked.get("n", 1))
        return _answer(asked)

    answer_at_once(content_for, port)


@contextmanager
def fake_servers(count: int) -> Iterator[list[str]]:
    """Yield the addresses of so many servers."""
    context, started, urls = multiprocessing.get_context("spawn"), [], []
    try:
        for _ in range(count):
            here, there = context.Pipe()
            server = context.Process(target=serve, args=(there,), daemon=True)
            server.start()
            started.append(server)
            urls.append(f"http://127.0.0.1:{here.recv()}/v1")
        yield urls
    finally:
        for server in started:
            server.kill()


def asked_for(urls: list[str]) -> int:
    """Return how many attempts the servers were asked for so far."""
    total = 0
    for url in urls:
        with urlopen(f"{url}/asked") as answer:
            total += int(answer.read())
    return total


@dataclass
class Watched:
    """CPU seconds and memory of a run's process and of Ray's, sampled while they live."""

    run: psutil.Process
    rows: list[tuple[float, int, float, float, float]] = field(default_factory=list)
    cpu: dict[str, float] = field(default_factory=dict)
    _seen: dict[tuple[int, str], float] = field(default_factory=dict)

    def sample(self, seconds: float, attempts: int) -> None:
        """Take one sample; a process's CPU seconds are those of when it was last seen."""
        memory = {"driver": 0.0, "verifier": 0.0, "ray": 0.0}
        for process, kind in self._processes():
            with suppress(psutil.Error):
                times, memory_now = process.cpu_times(), process.memory_info()
                size = (memory_now.rss - memory_now.shared) / 1e6
                self._seen[process.pid, kind] = times.user + times.system
                memory["verifier" if kind == "verifier" else "driver" if kind == "driver" else "ray"] += size
        self.rows.append((seconds, attempts, memory["driver"], memory["verifier"], memory["ray"]))
        self.cpu = {}
        for (_, kind), spent in self._seen.items():
            self.cpu[kind] = self.cpu.get(kind, 0.0) + spent

    def _processes(self) -> Iterator[tuple[psutil.Process, str]]:
        yield self.run, "driver"
        with suppress(psutil.Error):
            for child in self.run.children(recursive=True):
                yield child, "asking processes" if "asking_process" in " ".join(child.cmdline()) else "verifier"
        with suppress(psutil.Error):
            for child in psutil.Process().children(recursive=True):
                name = " ".join(child.cmdline()[:3])
                if name.startswith("ray::"):
                    yield child, "askers" if "Asker" in name else "other workers"
                elif "raylet" in name or "gcs_server" in name:
                    yield child, "raylet, gcs"


def attempts_made(folder: Path) -> int:
    """Return how many attempts a run says that it has made; 0 before the first."""
    try:
        last = (folder / "metrics.jsonl").read_bytes().rsplit(b"\n", 2)[-2]
        return int(json.loads(last)["attempts"])
    except (OSError, IndexError, ValueError, KeyError):
        return 0


def watched_run(recipe: Path, out: Path, overrides: list[str], total: int, midway: Callable[[], None]) -> Watched:
    """Run a recipe in a process of its own, call ``midway`` once half is done, and return what was seen."""
    changes = [argument for override in overrides for argument in ("--set", override)]
    command = [sys.executable, "-m", "flows.cli", "--quiet", "run", str(recipe), "--out", str(out), *changes]
    with (out.parent / f"{out.name}.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    watched, begun, told, is_midway = Watched(psutil.Process(process.pid)), time.monotonic(), (0.0, 0), False
    while process.poll() is None:
        attempts, now = attempts_made(out), time.monotonic() - begun
        watched.sample(now, attempts)
        if not is_midway and attempts >= total // 2:
            is_midway = True
            midway()
        if attempts - told[1] >= total / 20:
            _, _, driver, _, ray = watched.rows[-1]
            rate = (attempts - told[1]) / (now - told[0])
            print(f"  {attempts:>10,} attempts, {rate:>6,.0f}/s, driver {driver:.0f} MB, Ray {ray:.0f} MB", flush=True)
            told = now, attempts
        time.sleep(1.0)
    if process.returncode:
        raise SystemExit((out.parent / f"{out.name}.log").read_text()[-2000:])
    return watched


def contents(folder: Path) -> dict[str, bytes]:
    """Return what was published and the parts of the store, byte for byte."""
    paths = [*(folder / "curated" / "data").glob("*"), *(folder / "attempts").glob("*/part-*")]
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


def told(watched: Watched, out: Path, total: int, twice: int) -> None:
    """Print what a run took."""
    sampling = [row for row in watched.rows if 0 < row[1] < total]
    seconds = sampling[-1][0] - sampling[0][0] if len(sampling) > 1 else 0.0
    made = sampling[-1][1] - sampling[0][1] if len(sampling) > 1 else 0
    cpu = ", ".join(f"{kind} {1000 * spent / total:.3f}" for kind, spent in sorted(watched.cpu.items()))
    print(f"  {made / max(seconds, 1e-9):,.0f} attempts/s while sampling ({seconds:.0f} s)")
    print(f"  CPU s per 1,000 attempts: {cpu}")
    print(f"  asked beyond one request for each: {twice:,} ({100 * twice / total:.2f} %)")
    marks = [next((row for row in sampling if row[1] >= share * total), None) for share in (0.1, 0.3, 0.5, 0.7, 0.9)]
    for who, place in (("driver", 2), ("Ray", 4)):
        told_mb = ", ".join(f"{row[place]:.0f}" for row in marks if row is not None)
        print(f"  {who} MB at 10, 30, 50, 70 and 90 % of the attempts: {told_mb}")
    lines = [json.loads(line) for line in (out / "history.jsonl").read_text().splitlines()]
    peaks = ", ".join(f"{line['stage']} {line['peak_mb']:.0f}" for line in lines if "stage" in line)
    print(f"  the most memory ever, behind each stage, MB: {peaks}", flush=True)


@contextmanager
def cluster() -> Iterator[tuple[Any, Any]]:
    """Yield two nodes of Ray on this machine, one core each: the cluster, and the node that may be killed."""
    os.environ.setdefault("RAY_worker_niceness", "0")
    from ray.cluster_utils import Cluster

    head = {"num_cpus": 1, "include_dashboard": False, "object_store_memory": 200_000_000}
    made = Cluster(initialize_head=True, head_node_args=head)
    try:
        node = made.add_node(num_cpus=1, object_store_memory=200_000_000)
        yield made, node
    finally:
        made.shutdown()


def main() -> None:
    """Run with Ray and without, and print what was seen."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problems", type=int, default=20_000)
    parser.add_argument("--samples", type=int, nargs="+", default=[16])
    parser.add_argument("--shard-rows", type=int, default=2000)
    parser.add_argument("--leave-out", choices=("ray", "alone"), help="one of the two runs")
    parser.add_argument("--no-kill", action="store_true", help="let both nodes live")
    given = parser.parse_args()
    total = given.problems * ATTEMPTS
    with tempfile.TemporaryDirectory() as name, fake_servers(2) as urls:
        home = Path(name)
        rows = ({"question": f"What is {n} plus {n} times 3?", "final": str(4 * n)} for n in range(given.problems))
        (home / f"sums-{given.problems}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        for samples in given.samples:
            recipe = home / f"recipe-{samples}.toml"
            quoted = ", ".join(f'"{url}"' for url in urls)
            written = RECIPE.format(problems=given.problems, shard_rows=given.shard_rows, samples=samples, urls=quoted)
            recipe.write_text(written)
            print(
                f"{given.problems:,} problems x {ATTEMPTS}, {samples} samples a request, load {os.getloadavg()[0]:.1f}"
            )
            folders = []
            if given.leave_out != "ray":
                folders.append(on_ray(recipe, home / f"ray-{samples}", urls, total, kills=not given.no_kill))
            if given.leave_out != "alone":
                folders.append(alone(recipe, home / f"alone-{samples}", urls, total))
            if len(folders) == 2:
                one, other = map(contents, folders)
                print(f"the same bytes: {'yes' if one and one == other else 'NO'}", flush=True)


def on_ray(recipe: Path, out: Path, urls: list[str], total: int, *, kills: bool) -> Path:
    """Run on two nodes of Ray of which one is killed, and print what that took; return the run's folder."""
    print("on Ray, two nodes:", flush=True)
    before = asked_for(urls)
    with cluster() as (made, node):
        os.environ["RAY_ADDRESS"] = made.address

        def kill() -> None:
            if kills:
                made.remove_node(node, allow_graceful=False)
                print("  (a node is killed)", flush=True)

        watched = watched_run(recipe, out, ["runner=ray"], total, kill)
    told(watched, out, total, asked_for(urls) - before - total)
    return out


def alone(recipe: Path, out: Path, urls: list[str], total: int) -> Path:
    """Run without Ray, and print what that took; return the run's folder."""
    print("without Ray, two asking processes:", flush=True)
    before = asked_for(urls)
    watched = watched_run(recipe, out, [], total, lambda: None)
    told(watched, out, total, asked_for(urls) - before - total)
    return out


if __name__ == "__main__":
    main()
