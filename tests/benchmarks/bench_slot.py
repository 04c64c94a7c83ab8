"""What making the box around a slot costs, by rung, and the same slot inside bubblewrap instead.

    python tests/benchmarks/bench_slot.py [--bwrap PATH] [--rounds 10] [--compare]

Prints, alternating, the CPU and wall milliseconds from a slot's start to its first program's end; without isolation it
is what the interpreter itself takes. With ``--bwrap`` the slot of rung ``none`` is started by bubblewrap with
namespaces of all kinds, the toolchain bound read only, a private temporary folder and /proc; a property that it lacks
would have to come from our own code. ``--compare`` prints which ones the doctor finds missing in each: run it as
`unshare --mount --propagation private python …`.
"""

from __future__ import annotations

import argparse
import contextlib
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from unittest import mock

from curation.verify.sandbox import doctor
from curation.verify.sandbox import slot as slots
from curation.verify.sandbox.ladder import probe_rung
from curation.verify.sandbox.library import build_library
from curation.verify.sandbox.view import build_view, interpreter
from tests.benchmarks.bench_programs import cpu_s


@contextlib.contextmanager
def inside_bubblewrap(bwrap: str) -> Iterator[None]:
    """Have every slot's interpreter started by bubblewrap while this lasts."""
    base = Path(interpreter())
    binds = dict.fromkeys(
        path
        for kind in ("std", "compile")
        for path in (*build_view(kind, None).binds, str(base.parent), str(Path(slots.__file__).parent))
    )
    words = [bwrap, "--unshare-all", "--die-with-parent", "--proc", "/proc", "--dev", "/dev"]
    for path in (*binds, str(build_library().parent)):
        words += ["--ro-bind", path, path]
    words += ["--tmpfs", tempfile.gettempdir(), "--bind", '"$scratch"', '"$scratch"']
    with tempfile.NamedTemporaryFile("w", dir=Path.home(), suffix=".sh", delete=False) as script:
        script.write('#!/bin/sh\nfor plan in "$@"; do :; done\n')
        script.write('scratch=$(printf %s "$plan" | sed \'s/.*"scratch": "\\([^"]*\\)".*/\\1/\')\n')
        script.write(f'exec {" ".join(words)} {base} "$@"\n')
    path = Path(script.name)
    path.chmod(0o755)
    try:
        with mock.patch.object(slots, "interpreter", return_value=str(path)):
            yield
    finally:
        path.unlink()


def _started(rung: str) -> tuple[float, float]:
    """Return the CPU and wall seconds of one slot that ran one program."""
    library = build_library()
    before, start = cpu_s(), time.perf_counter()
    slot = probe_rung(rung, library)
    wall, cpu = time.perf_counter() - start, cpu_s() - before
    slot.close()
    return cpu, wall


def _wrapped(bwrap: str, act: Callable[[], object]) -> object:
    with inside_bubblewrap(bwrap):
        return act()


def main() -> None:
    """Read the command line, start slots in turn, and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bwrap")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--compare", action="store_true", help="run the doctor in each")
    args = parser.parse_args()
    works = [*doctor.working_rungs(), "none"]
    ways: dict[str, Callable[[], object]] = {rung: partial(_started, rung) for rung in works}
    checks: dict[str, Callable[[], object]] = {rung: partial(doctor.diagnose, rung) for rung in works}
    if args.bwrap:
        for acts in (ways, checks):
            acts["bubblewrap"] = partial(_wrapped, args.bwrap, acts["none"])
    took: dict[str, list[tuple[float, float]]] = {way: [] for way in ways}
    for _ in range(args.rounds):
        for way, act in ways.items():
            took[way].append(act())  # type: ignore[arg-type]
    for way, times in took.items():
        cpu, wall = (1000 * statistics.median(column) for column in zip(*times, strict=True))
        print(f"{way:16} {cpu:6.0f} ms CPU {wall:6.0f} ms wall")
    for way, check in checks.items() if args.compare else ():
        missing = [f"{entry.name} ({entry.by})" for entry in check() if not entry.ok]  # type: ignore[attr-defined]
        print(f"{way:16} missing {len(missing)}: {', '.join(missing)}")


if __name__ == "__main__":
    main()
