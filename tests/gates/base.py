"""What a gate is: a name, a room, a tier, a limit, and a function that measures."""

from __future__ import annotations

import json
import math
import os
import re
import subprocess
import sys
import time
import tomllib
import traceback
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any, Literal
from xml.etree import ElementTree

from tests.places import ROOT, SHARED_DATA, WHOLE

Tier = Literal["quick", "room", "all"]
Status = Literal["holds", "fails", "expected", "stale", "skipped"]


class SkippedError(Exception):
    """The gate cannot be measured here; the text states why."""


class StaleError(Exception):
    """The stored answers of a model do not cover the prompts of today."""


@dataclass(frozen=True, slots=True)
class Limit:
    """A bound on a figure: `Limit(">=", 95.1, "%")`."""

    sign: Literal[">=", "<=", "=="]
    bound: float
    unit: str = ""

    def admits(self, value: float) -> bool:
        """Return whether a value is within the limit."""
        return {">=": value >= self.bound, "<=": value <= self.bound, "==": value == self.bound}[self.sign]

    def __str__(self) -> str:
        return f"{self.sign} {number(self.bound)} {self.unit}".strip()


@dataclass(frozen=True, slots=True)
class Measured:
    """A figure, in the unit of its gate's limit."""

    value: float
    of: float | None = None
    """The count that `value` is out of, where the figure is a count."""
    interval: tuple[float, float] | None = None
    """95 %, in the unit of the value."""
    note: str = ""


@dataclass(frozen=True, slots=True)
class Gate:
    """A figure that must hold."""

    name: str
    room: str
    tier: Tier
    limit: Limit
    measure: Callable[[], Measured]
    until: str
    """The part of the plan until which it may fail, or nothing."""


@dataclass(frozen=True, slots=True)
class Row:
    """A line of the table."""

    name: str
    room: str
    value: str
    interval: str
    limit: str
    status: Status
    note: str
    seconds: float


GATES: dict[str, Gate] = {}


def gate(
    name: str, limit: Limit, *, tier: Tier = "quick", until: str = "", room: str = ""
) -> Callable[[Callable[[], Measured]], Callable[[], Measured]]:
    """Register a function as the gate `ROOM/NAME`; the room is the function's module if none is given."""

    def register(measure: Callable[[], Measured]) -> Callable[[], Measured]:
        place = room or measure.__module__.rpartition(".")[2]
        full = f"{place}/{name}"
        if full in GATES:
            raise ValueError(f"two gates are named {full}")
        GATES[full] = Gate(full, place, tier, limit, measure, until)
        return measure

    return register


def register_tests(room: str) -> None:
    """Register the gates of a room in `tests.toml`, which count tests that pass."""
    for name, row in tomllib.loads(Path(__file__).with_name("tests.toml").read_text("utf-8")).get(room, {}).items():
        gate(name, Limit("==", row["count"], row["unit"]), tier="room", room=room)(partial(tests_pass, *row["tests"]))


def run(chosen: Gate) -> Row:
    """Measure a gate; an error of its own is a failure, and its text the note."""
    started = time.monotonic()
    value = interval = note = ""
    status: Status
    try:
        found = chosen.measure()
    except SkippedError as why:
        status, note = "skipped", str(why)
    except StaleError as why:
        status, note = "stale", str(why)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - a gate that breaks fails, the others go on
        status, note = "fails", " ".join(f"{type(error).__name__}: {error}".split())[-300:]
        traceback.print_exc()
    else:
        value = number(found.value) + (f" of {number(found.of)}" if found.of is not None else "")
        value = f"{value} {chosen.limit.unit}".strip()
        interval = f"{number(found.interval[0])} to {number(found.interval[1])}" if found.interval else ""
        note, status = found.note, "holds" if chosen.limit.admits(found.value) else "fails"
        if chosen.until and status == "fails":
            status, note = "expected", f"until {chosen.until}. {note}".strip()
        elif chosen.until:
            status, note = "fails", f"it holds: remove its mark (until {chosen.until}). {note}".strip()
    return Row(chosen.name, chosen.room, value, interval, str(chosen.limit), status, note, time.monotonic() - started)


def number(value: float) -> str:
    """Return a figure as it is printed, with at most four significant digits behind a point.

    Example: ``number(95.1293)`` is ``"95.13"``, ``number(1428499)`` is ``"1,428,499"``.
    """
    if not math.isfinite(value):
        return str(value)
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}"
    return f"{value:,.2f}" if abs(value) >= 10 else f"{value:.3g}"


def wilson(hits: int, count: int, *, scale: float = 1.0) -> tuple[float, float]:
    """Return the 95 % interval of a share (Wilson 1927), times `scale`."""
    z = 1.959964
    middle = (hits + z * z / 2) / (count + z * z)
    half = z * (hits * (count - hits) / count + z * z / 4) ** 0.5 / (count + z * z)
    return max(0.0, middle - half) * scale, min(1.0, middle + half) * scale


def share(hits: int, count: int, note: str = "") -> Measured:
    """Return a share in percent with its interval."""
    return Measured(100 * hits / count, interval=wilson(hits, count, scale=100), note=note)


def counted(hits: int, count: int, note: str = "") -> Measured:
    """Return a count with its interval."""
    return Measured(hits, count, wilson(hits, count, scale=count), note)


def middle(values: Sequence[float]) -> tuple[float, tuple[float, float]]:
    """Return the median and its 95 % interval, two of the values by their rank."""
    ranked, reach = sorted(values), 0.98 * len(values) ** 0.5
    low, high = math.floor(len(ranked) / 2 - reach), math.ceil(len(ranked) / 2 + reach)
    return median(ranked), (ranked[max(low, 0)], ranked[min(high, len(ranked) - 1)])


def shared(*names: str) -> Path:
    """Return a path of the shared data.

    Raises:
        SkippedError: it is not on this machine.
    """
    path = SHARED_DATA.joinpath(*names)
    if not path.exists():
        raise SkippedError(
            f"needs {'/'.join(names)} of the shared data (GOLDILOCKS_DATA), which is not on this machine"
        )
    return path


def shared_rows(*names: str) -> list[dict[str, Any]]:
    """Return the rows of a file of the shared data."""
    return [json.loads(line) for line in shared(*names).read_text(encoding="utf-8").split("\n") if line]


def tests_pass(*arguments: str) -> Measured:
    """Run tests with all their cases; return how many of those that ran passed. The gate's limit counts them.

    Raises:
        SkippedError: all were skipped.
        RuntimeError: a named test does not exist.
    """
    with TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        flags = ["-q", "-p", "no:cacheprovider", f"--junitxml={report}", "-o", "junit_logging=no"]
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *flags, *arguments],
            cwd=ROOT,
            env={**os.environ, WHOLE: "1"},
            capture_output=True,
            text=True,
        )
        if done.returncode not in (0, 1) or not report.exists():
            raise RuntimeError(f"pytest ran no test: {(done.stdout + done.stderr)[-500:]}")
        suite = ElementTree.parse(report).getroot()[0]
        skips = [case.attrib.get("message", "") for case in suite.iter("skipped")]
    counts = {name: int(suite.attrib[name]) for name in ("tests", "failures", "errors", "skipped")}
    ran = counts["tests"] - counts["skipped"]
    if not ran:
        raise SkippedError("; ".join(dict.fromkeys(skips)))
    passed = ran - counts["failures"] - counts["errors"]
    failed = re.findall(r"^(?:FAILED|ERROR) (\S+)", done.stdout, flags=re.MULTILINE)
    notes = [f"failed: {name}" for name in failed]
    if skips:
        notes.append(f"{len(skips)} skipped: {'; '.join(dict.fromkeys(skips))}")
    return Measured(passed, ran, note="; ".join(notes))


def write_rows(rows: list[Row], file: Path) -> None:
    """Append rows to a file, a JSON line each."""
    with file.open("a", encoding="utf-8") as stream:
        stream.writelines(json.dumps(asdict(row)) + "\n" for row in rows)


def read_rows(file: Path) -> list[Row]:
    """Return the rows of a file."""
    return [Row(**json.loads(line)) for line in file.read_text(encoding="utf-8").splitlines()] if file.exists() else []
