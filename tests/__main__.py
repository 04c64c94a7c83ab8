"""The test suite in two lanes at once, for two cores: `make test`, and with `--all` `make test-all`.

Without `--all`, tests marked `slow` are left out: those that take long and repeat in another case what a quicker test
shows. The rooms are handed out longest first; what shares something that is dear to make (a Prefect server, a finished
run, an engine's models) stays together, so each lane makes it once. What stands in the memory file system is looked at
by tests of training, so all engines share one lane. Arguments go to pytest, and a `-m` among them replaces the choice
made here; where they name a file or a folder, pytest runs as it always does, slow tests and all.

Invariants: every test module is in exactly one room (`rooms` fails where one is not), and the status is that of the
worst room. What it does not do: number or time tests; pytest says that for each room.
"""

from __future__ import annotations

import os
import queue
import re
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Sequence
from typing import Any

from tests.places import ROOT

LANES = 2
FIRST = (
    ("tests/flows",),
    ("tests/training", "tests/curation/policies"),
    ("tests/curation/verify",),
    ("tests/verify",),
)
"""Rooms, longest first; all other tests are one more."""

ALL = "--all"
QUICK = ("-m", "not slow")

NO_TESTS = 5
"""Pytest's status where nothing was picked."""

WORDS = ("failed", "error", "passed", "skipped", "deselected", "xfailed", "xpassed", "warning")
SAYS = re.compile(rf"(\d+) ({'|'.join(WORDS)})s?\b")


def rooms() -> list[list[str]]:
    """Paths for pytest, a list per room, that hold every test module once."""
    modules = {str(path.relative_to(ROOT)) for path in (ROOT / "tests").rglob("test_*.py")}
    made, placed = [], set()
    for room in FIRST:
        inside = {name for name in modules - placed if name.startswith(tuple(f"{folder}/" for folder in room))}
        if inside:
            made.append(list(room))
            placed |= inside
    return [*made, sorted(modules - placed)]


class Room:
    """A pytest process; its progress is shown at once, its report as a whole when it has ended."""

    lock = threading.Lock()

    def __init__(self, paths: Sequence[str], flags: Sequence[str]) -> None:
        self.command = [sys.executable, "-m", "pytest", *flags, *paths]
        self.name = paths[0] if len(paths) <= 2 else "the other rooms"
        self.status = 0
        self.counts: Counter[str] = Counter()

    def run(self) -> None:
        """Run to the end."""
        begun, report = time.monotonic(), []
        pipes: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        process = subprocess.Popen(self.command, cwd=ROOT, text=True, **pipes)
        assert process.stdout is not None
        with process.stdout as said:
            for line in said:
                if report or (line.startswith("===") and "test session starts" not in line):
                    report.append(line)
                else:
                    self.show(line)
                if found := SAYS.findall(line):
                    self.counts = Counter({word: int(number) for number, word in found})
        self.status = process.wait()
        took = f"{time.monotonic() - begun:.0f} s, status {self.status}"
        self.show("".join([f"\n-- {self.name}: {took}\n", *report]))

    def show(self, text: str) -> None:
        """Write whole lines, one room at a time."""
        with self.lock:
            sys.stdout.write(text)
            sys.stdout.flush()


def work(left: queue.SimpleQueue[Room]) -> None:
    """A lane: one room after the other."""
    while True:
        try:
            room = left.get_nowait()
        except queue.Empty:
            return
        room.run()


def main(arguments: Sequence[str]) -> int:
    """Run the tests; the status for the shell."""
    flags = [argument for argument in arguments if argument != ALL]
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if any((ROOT / flag.partition("::")[0]).exists() for flag in flags if flag[:1] != "-"):
        return subprocess.run([sys.executable, "-m", "pytest", *flags], cwd=ROOT).returncode
    flags = flags if ALL in arguments else [*QUICK, *flags]
    if cores < LANES:
        return subprocess.run([sys.executable, "-m", "pytest", *flags], cwd=ROOT).returncode
    begun = time.monotonic()
    all_rooms = [Room(paths, flags) for paths in rooms()]
    left: queue.SimpleQueue[Room] = queue.SimpleQueue()
    for room in all_rooms:
        left.put(room)
    lanes = [threading.Thread(target=work, args=(left,)) for _ in range(LANES)]
    for lane in lanes:
        lane.start()
    interrupted = False
    for lane in lanes:
        while lane.is_alive():
            try:
                lane.join()
            except KeyboardInterrupt:  # pytest is interrupted too, and says how far it came
                interrupted = True
                while not left.empty():
                    left.get()
    total: Counter[str] = Counter()
    for room in all_rooms:
        total += room.counts
    said = ", ".join(f"{number} {word}" for word, number in sorted(total.items(), key=lambda one: WORDS.index(one[0])))
    print(f"\n== {said or 'no tests'} in {time.monotonic() - begun:.0f} s", flush=True)
    statuses = [room.status for room in all_rooms]
    if interrupted:
        return 130
    return NO_TESTS if set(statuses) == {NO_TESTS} else max((s & 255 for s in statuses if s != NO_TESTS), default=0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
