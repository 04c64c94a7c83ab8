"""Sampling on Ray at size: fake servers, two nodes of which one is killed, and the same run without Ray.

    .venv/bin/python -m tests.benchmarks.bench_ray_sampling [--problems 20000] [--samples 1 16] [--no-kill]
        [--leave-out ray|alone] [--words 200] [--stopping] [--alone-problems 20000] [--keep FOLDER]

Two nodes of Ray on this machine, one core each, with an asking actor on either. `goldilocks run` is a process of its
own beside them: all stages of the math pipeline on made sums, 16 attempts a problem, all of them or with `--stopping`
as many as the product's defaults make. The servers answer at once with so many words and a box, right or wrong by the
request's seed and the problem. Once half of the problems are done the second node is killed, and nothing takes its
place.

Printed as it goes, so that a run that is cut off has its figures too: problems, attempts, attempts a second since the
line before, CPU seconds and memory by who had them (resident, less what is shared: Ray's object store is bounded by
itself). In the end: CPU seconds per 1,000 attempts, what the servers were
asked beyond one request for each (which is what the dead node was asking), the peak that each later stage left, what
the store holds, and whether set and store are the bytes of a run without Ray. That run may have the
first problems alone; its parts of the store must be among the others then. Wall times lie on a busy machine, CPU
seconds less.
"""

from __future__ import annotations

import argparse
import hashlib
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

import polars as pl
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
model = "student"
band = {{ attempts = 16, max_pass_rate = {max_pass_rate} }}
sampling = {{ early_stopping = {stopping}, samplers = 2 }}
[models.student]
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


def _answer(asked: dict[str, Any], thinking: str) -> bytes:
    """Return the response to a request: right where the seed says so, by a rate that is the problem's own."""
    content = asked["messages"][-1]["content"] if "messages" in asked else asked["prompt"]
    found = NUMBER.search(content)
    number = int(found.group(1)) if found is not None else 0
    tokens = {"token_ids": [1] * 8} if asked.get("return_token_ids") else {}
    choices = []
    for index in range(int(asked.get("n", 1))):
        mixed = ((int(asked.get("seed", 0)) + index) * 2654435761) >> 7
        is_right = mixed % 17 < number % 18
        text = f"{thinking}\\boxed{{{4 * number if is_right else mixed % 5}}}"
        message = {"role": "assistant", "content": text}
        choices.append({"index": index, "finish_reason": "stop", "message": message, "text": text, **tokens})
    return json.dumps({"choices": choices, "usage": {"prompt_tokens": 40, "completion_tokens": 210}}).encode()


def serve(port: Connection, words: int) -> None:
    """Answer whatever comes, until killed; ``port`` receives the port. ``/asked`` tells how much was asked for."""
    asked_for, thinking = 0, "thinking " * words

    def content_for(head: bytes, body: bytes) -> bytes:
        nonlocal asked_for
        if head.startswith(b"GET"):
            return str(asked_for).encode() if b"/asked" in head.split(b"\r\n", 1)[0] else MODELS
        asked = json.loads(body)
        asked_for += int(asked.get("n", 1))
        return _answer(asked, thinking)

    answer_at_once(content_for, port)


@contextmanager
def fake_servers(count: int, words: int = 200) -> Iterator[list[str]]:
    """Yield the addresses of so many servers, whose responses have so many words."""
    context, started, urls = multiprocessing.get_context("spawn"), [], []
    try:
        for _ in range(count):
            here, there = context.Pipe()
            server = context.Process(target=serve, args=(there, words), daemon=True)
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
    rows: list[tuple[float, int, dict[str, float]]] = field(default_factory=list)
    cpu: dict[str, float] = field(default_factory=dict)
    _seen: dict[tuple[int, str], float] = field(default_factory=dict)

    def sample(self, seconds: float, attempts: int) -> None:
        """Take one sample; a process's CPU seconds are those of when it was last seen."""
        memory: dict[str, float] = {}
        for process, kind in self._processes():
            with suppress(psutil.Error):
                times, memory_now = process.cpu_times(), process.memory_info()
                self._seen[process.pid, kind] = times.user + times.system
                memory[kind] = memory.get(kind, 0.0) + (memory_now.rss - memory_now.shared) / 1e6
        self.rows.append((seconds, attempts, memory))
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
                elif "gcs_server" in name:
                    yield child, "gcs"
                elif "raylet" in name:
                    yield child, "raylets"
                elif "multiprocessing" in " ".join(child.cmdline()):
                    yield child, "fake servers"


@dataclass
class Done:
    """What a run says that it has done: problems of the sampler that is at work, attempts of all of them."""

    problems: int = 0
    attempts: int = 0
    _before: int = 0
    _last: int = 0

    def read(self, folder: Path) -> None:
        """Read the last line of a run's metrics, if there is one of sampling."""
        try:
            with (folder / "metrics.jsonl").open("rb") as metrics:
                metrics.seek(max(0, metrics.seek(0, os.SEEK_END) - 4096))
                last = json.loads(metrics.read().rsplit(b"\n", 2)[-2])
            attempts, self.problems = int(last["attempts"]), int(last["problems"])
        except (OSError, IndexError, ValueError, KeyError):
            return
        if attempts < self._last:  # the anchor's sampler was at work before
            self._before += self._last
        self._last, self.attempts = attempts, self._before + attempts


def watched_run(recipe: Path, out: Path, overrides: list[str], problems: int, midway: Callable[[], None]) -> Watched:
    """Run a recipe in a process of its own, call ``midway`` once half is done, and return what was seen."""
    changes = [argument for override in overrides for argument in ("--set", override)]
    command = [sys.executable, "-m", "flows.cli", "--quiet", "run", str(recipe), "--out", str(out), *changes]
    with (out.parent / f"{out.name}.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    watched, begun, told_at, is_midway = Watched(psutil.Process(process.pid)), time.monotonic(), (0.0, 0), False
    done, step = Done(), max(1, problems * ATTEMPTS // 20)
    while process.poll() is None:
        done.read(out)
        now = time.monotonic() - begun
        watched.sample(now, done.attempts)
        if not is_midway and done.problems >= problems // 2:
            is_midway = True
            midway()
        if done.attempts - told_at[1] >= step:
            rate = (done.attempts - told_at[1]) / (now - told_at[0])
            spent = ", ".join(f"{kind} {cpu:.0f}" for kind, cpu in sorted(watched.cpu.items()))
            held = ", ".join(f"{kind} {size:.0f}" for kind, size in sorted(watched.rows[-1][2].items()))
            print(
                f"  {now:6.0f} s: {done.problems:,} problems, {done.attempts:,} attempts, {rate:,.0f}/s; "
                f"CPU s: {spent}; MB: {held}; load {os.getloadavg()[0]:.1f}",
                flush=True,
            )
            told_at = now, done.attempts
        time.sleep(1.0)
    if process.returncode:
        raise SystemExit((out.parent / f"{out.name}.log").read_text()[-2000:])
    return watched


def contents(folder: Path) -> dict[str, bytes]:
    """Return the digests of what was published and of the parts of the store."""
    paths = [*(folder / "curated" / "data").glob("*"), *(folder / "attempts").glob("*/part-*")]
    return {
        str(path.relative_to(folder)): hashlib.blake2b(path.read_bytes(), digest_size=16).digest() for path in paths
    }


def stored(folder: Path) -> tuple[int, int, int]:
    """Return how many attempts the parts of a store hold, how often one stands twice, and of how many problems."""
    frames = [pl.read_parquet(path, columns=["problem", "index"]) for path in (folder / "attempts").glob("*/part-*")]
    held = pl.concat([frame.select(pl.col("problem").hash(), "index") for frame in frames])
    return held.height, held.height - held.unique().height, held["problem"].n_unique()


def told(watched: Watched, out: Path, asked: int) -> None:
    """Print what a run took."""
    attempts, twice, of = stored(out)
    sampling = [row for row in watched.rows if 0 < row[1] < attempts]
    seconds = sampling[-1][0] - sampling[0][0] if len(sampling) > 1 else 0.0
    made = sampling[-1][1] - sampling[0][1] if len(sampling) > 1 else 0
    cpu = ", ".join(f"{kind} {1000 * spent / attempts:.3f}" for kind, spent in sorted(watched.cpu.items()))
    print(f"  {attempts:,} attempts at {of:,} problems in the store, {twice} of them twice")
    print(
        f"  {made / max(seconds, 1e-9):,.0f} attempts/s while sampling ({seconds:.0f} s of {watched.rows[-1][0]:.0f})"
    )
    print(f"  CPU s per 1,000 attempts: {cpu}")
    print(f"  asked beyond what is stored: {asked - attempts:,} ({100 * (asked - attempts) / attempts:.2f} %)")
    marks = [next((row for row in sampling if row[1] >= share * attempts), None) for share in (0.1, 0.3, 0.5, 0.7, 0.9)]
    for kind in sorted({kind for row in sampling for kind in row[2]}):
        held = ", ".join(f"{row[2].get(kind, 0.0):.0f}" for row in marks if row is not None)
        print(f"  MB of {kind} at 10, 30, 50, 70 and 90 % of the attempts: {held}")
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


def written_recipe(home: Path, urls: list[str], given: argparse.Namespace, problems: int, samples: int) -> Path:
    """Write so many sums and a recipe on them; return the recipe."""
    rows = ({"question": f"What is {n} plus {n} times 3?", "final": str(4 * n)} for n in range(problems))
    (home / f"sums-{problems}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    recipe = home / f"recipe-{problems}-{samples}.toml"
    written = RECIPE.format(
        problems=problems,
        shard_rows=given.shard_rows,
        samples=samples,
        urls=", ".join(f'"{url}"' for url in urls),
        stopping=str(given.stopping).lower(),
        max_pass_rate=0.75 if given.stopping else 1.0,
    )
    recipe.write_text(written)
    return recipe


def main() -> None:
    """Run with Ray and without, and print what was seen."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problems", type=int, default=20_000)
    parser.add_argument("--samples", type=int, nargs="+", default=[16])
    parser.add_argument("--shard-rows", type=int, default=2000)
    parser.add_argument("--words", type=int, default=200, help="of a response")
    parser.add_argument("--stopping", action="store_true", help="stop early, as the product does by default")
    parser.add_argument("--leave-out", choices=("ray", "alone"), help="one of the two runs")
    parser.add_argument("--alone-problems", type=int, help="how many of the problems run without Ray; all where absent")
    parser.add_argument("--no-kill", action="store_true", help="let both nodes live")
    parser.add_argument("--keep", type=Path, help="a folder, where the runs then stay")
    given = parser.parse_args()
    few = given.alone_problems or given.problems
    with tempfile.TemporaryDirectory() as name, fake_servers(2, given.words) as urls:
        home = given.keep or Path(name)
        home.mkdir(exist_ok=True)
        for samples in given.samples:
            print(
                f"{given.problems:,} problems, {ATTEMPTS} attempts, {'stopped early' if given.stopping else 'all'}, "
                f"{samples} samples a request, {given.words} words, load {os.getloadavg()[0]:.1f}"
            )
            folders = []
            if given.leave_out != "ray":
                recipe = written_recipe(home, urls, given, given.problems, samples)
                out = home / f"ray-{samples}"
                folders.append(on_ray(recipe, out, urls, given.problems, kills=not given.no_kill))
            if given.leave_out != "alone":
                recipe = written_recipe(home, urls, given, few, samples)
                folders.append(alone(recipe, home / f"alone-{samples}", urls, few))
            if len(folders) == 2:
                compare(*folders, few == given.problems)


def compare(ray: Path, other: Path, is_whole: bool) -> None:
    """Print whether set and store of two runs are the same bytes; of a smaller run, how many parts of its store are."""
    many, few = contents(ray), contents(other)
    if is_whole:
        print(f"the same bytes: {'yes' if few and few == many else 'NO'}", flush=True)
        return
    parts = [path for path in few if path.startswith("attempts")]
    same = sum(few[path] == many.get(path) for path in parts)
    print(f"of the {len(parts)} parts without Ray {same} are the same bytes with it", flush=True)


def on_ray(recipe: Path, out: Path, urls: list[str], problems: int, *, kills: bool) -> Path:
    """Run on two nodes of Ray of which one is killed, and print what that took; return the run's folder."""
    print("on Ray, two nodes:", flush=True)
    before = asked_for(urls)
    with cluster() as (made, node):
        os.environ["RAY_ADDRESS"] = made.address

        def kill() -> None:
            if kills:
                made.remove_node(node, allow_graceful=False)
                print("  (a node is killed)", flush=True)

        watched = watched_run(recipe, out, ["runner=ray"], problems, kill)
    told(watched, out, asked_for(urls) - before)
    return out


def alone(recipe: Path, out: Path, urls: list[str], problems: int) -> Path:
    """Run without Ray, and print what that took; return the run's folder."""
    print("without Ray, two asking processes:", flush=True)
    before = asked_for(urls)
    watched = watched_run(recipe, out, [], problems, lambda: None)
    told(watched, out, asked_for(urls) - before)
    return out


if __name__ == "__main__":
    main()
