"""A set's receipt (receipt.json and RECEIPT.md): figures with intervals, methods and digests.

Invariants: equal figures give equal bytes; no local path and only the version's date is included. ``digest``
reveals edits, not their author.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeVar

import polars as pl
from pydantic import TypeAdapter, ValidationError

from curation.publish.pages import render_template, wilson
from curation.records import SourceError, StoreError

_T = TypeVar("_T")

FILE, PAGE = "receipt.json", "RECEIPT.md"

SCHEMA = "goldilocks-receipt@1"


class Needs(StrEnum):
    """What computing a figure again requires."""

    SET = "set"  # the set's own files
    PACKAGE = "package"  # this version of Goldilocks alone
    RUN = "run"  # the folder of its run
    TRAINING = "training"  # models trained anew


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure; if not measured, ``value`` is None and ``measure`` names the command.

    Args:
        name: dotted; begins with the section.
        n: of rows, verdicts or solutions.
    """

    name: str
    title: str
    value: float | int | str | None = None
    interval: tuple[float, float] | None = None
    n: int | None = None
    how: str = ""
    needs: Needs = Needs.RUN
    measure: str | None = None
    counts: Mapping[str, int] = field(default_factory=dict)

    @property
    def section(self) -> str:
        """Return the section that it is in."""
        return self.name.partition(".")[0]

    @property
    def text(self) -> str:
        """Return value and interval as printed."""
        if self.value is None:
            return "not measured" if self.measure else "–"
        if isinstance(self.value, float):
            low_high = "" if self.interval is None else f" ({self.interval[0]:.3f} to {self.interval[1]:.3f})"
            return f"{self.value:.3f}{low_high}"
        return f"{self.value:,}" if isinstance(self.value, int) else self.value

    @property
    def counted(self) -> str:
        """Return its components in words."""
        return ", ".join(f"{name.replace('_', ' ')} {count:,}" for name, count in self.counts.items())

    @property
    def numbers(self) -> str:
        """Return all numbers as printed."""
        of, counts = "" if self.n is None else f" of {self.n:,}", f" [{self.counted}]" if self.counts else ""
        return f"{self.text}{of}{counts}"


@dataclass(frozen=True, slots=True)
class Receipt:
    """The receipt of a set's version.

    Args:
        files: SHA-256 by path, without the receipt and the mark of publication.
        columns: digests of ``data/train-*.parquet``.
    """

    name: str
    version: int
    made_on: str
    goldilocks: str
    verifier: str
    rows: int
    figures: tuple[Figure, ...]
    files: Mapping[str, str] = field(default_factory=dict)
    columns: Mapping[str, str] = field(default_factory=dict)

    def figure(self, name: str) -> Figure | None:
        """Return a figure by its name."""
        return next((figure for figure in self.figures if figure.name == name), None)

    @property
    def digest(self) -> str:
        """Return the SHA-256 of its content."""
        return hashlib.sha256(json.dumps({"schema": SCHEMA, **asdict(self)}, sort_keys=True).encode()).hexdigest()

    def as_json(self) -> str:
        """Return the text of receipt.json."""
        table = {"schema": SCHEMA, **asdict(self), "digest": self.digest}
        return json.dumps(table, indent=1, ensure_ascii=False) + "\n"


def read_receipt(folder: Path) -> Receipt:
    """Return a set's receipt.

    Raises:
        SourceError: it is missing or unreadable.
    """
    path = folder / FILE
    try:
        table = json.loads(path.read_text(encoding="utf-8"))
        if table["schema"] != SCHEMA:
            raise SourceError(f"{path}: schema {table['schema']}, this version reads {SCHEMA}.")
        return TypeAdapter(Receipt).validate_python(table)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise SourceError(f"{folder}: no {FILE} there; older sets have none; `goldilocks run` writes it.") from error
    except (ValueError, KeyError, TypeError) as error:
        raise SourceError(
            f"{path} is damaged ({first_fault(error)}); `goldilocks publish DIR --receipt` of the run's folder writes "
            "it anew."
        ) from error


def read_stored(path: Path, kind: type[_T], remedy: str) -> _T | None:
    """Return a dataclass from its JSON file, or None.

    Raises:
        StoreError: the file is damaged.
    """
    try:
        return TypeAdapter(kind).validate_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise StoreError(f"{path} is damaged ({first_fault(error)}); remove it, and {remedy}.") from error


def first_fault(error: Exception) -> str:
    """Return an error's first line, or the first mistake that pydantic found."""
    if isinstance(error, ValidationError):
        fault = error.errors()[0]
        return f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}"
    return next(iter(str(error).splitlines()), "")


def share_figure(
    name: str, title: str, hits: int, n: int, how: str, needs: Needs, counts: Mapping[str, int] | None = None
) -> Figure:
    """Return a share with its 95 % Wilson interval; without value if ``n`` is 0."""
    if not n:
        return Figure(name, title, None, None, 0, how, needs)
    low, high = wilson(hits, n)
    interval = round(low, 4), round(high, 4)
    return Figure(name, title, round(hits / n, 4), interval, n, how, needs, counts=dict(counts or {}))


LEFT_OUT = (FILE, PAGE, ".published.json")
"""The receipt's files, and the mark that names its digest."""

_ROWS = 10_000


def file_digests(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of a set's files by path."""
    digests = {}
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        name = path.relative_to(folder).as_posix()
        if name not in LEFT_OUT and not path.name.startswith(".aside-"):
            with path.open("rb") as file:
                digests[name] = hashlib.file_digest(file, "sha256").hexdigest()
    return digests


def column_digests(files: Sequence[Path]) -> tuple[int, dict[str, str]]:
    """Return parquet files' number of rows, and column digests."""
    rows, hashes = 0, dict[str, Any]()
    for path in files:
        for name in pl.read_parquet_schema(path):
            column = pl.read_parquet(path, columns=[name], glob=False).select(pl.col(name).alias("v"))
            digest = hashes.setdefault(name, hashlib.blake2b(digest_size=16))
            for chunk in column.iter_slices(_ROWS):
                digest.update(chunk.write_ndjson().encode())
        rows += column.height
    return rows, {name: digest.hexdigest() for name, digest in hashes.items()}


def licence_figures(ledger: Mapping[str, Sequence[tuple[str, int, int, int]]], card: str) -> list[Figure]:
    """Return a figure per source and licence.

    Args:
        ledger: by source: licence, problems, changed texts, merged copies.
    """
    how = (
        "rows of data/train-*.parquet by source and license, and the copies in also_from; "
        "ATTRIBUTION.md names the place of each source"
    )
    figures = [
        Figure("licences.card", "The card's licence", card, how="the header of README.md", needs=Needs.SET),
    ]
    for source in sorted(ledger):
        for license, problems, changed, merged in ledger[source]:
            name, title = f"licences.{source}.{license}", f"{source}, {license}"
            counts = {"changed texts": changed, "merged copies": merged}
            figures.append(Figure(name, title, problems, how=how, needs=Needs.SET, counts=counts))
    return figures


def differing_figures(stated: Receipt, computed: Receipt, names: Collection[str]) -> list[str]:
    """Return a sentence for each figure that is recomputed differently."""
    sentences = []
    for name in sorted(names):
        old, new = stated.figure(name), computed.figure(name)
        if old is not None and new is not None and old != new and _numbers(old) == _numbers(new):
            sentences.append(f"{name}: the figure is right, but its words in the receipt were changed.")
        elif old != new:
            was, now = ("nothing" if figure is None else figure.numbers for figure in (old, new))
            sentences.append(f"{name}: the receipt states {was}, {now} comes out.")
    return sentences


def _numbers(figure: Figure) -> tuple[object, ...]:
    return figure.value, figure.interval, figure.n, dict(figure.counts)


_SOLUTION = ["problem", "solution"]


def power_of_tests(runs: pl.DataFrame, decisions: pl.DataFrame, made: pl.DataFrame) -> list[Figure]:
    """Return the shares of right solutions that pass and wrong ones that fail.

    The latter also without made tests that only one wrong solution fails.

    Args:
        made: problem and test of tests made here.
    """
    staying = decisions.filter(pl.col("decision") != "discard").select("problem", "test", kept_output="output")
    ran = runs.filter(pl.col("ended").ne_missing("skipped")).join(staying, on=["problem", "test"])
    fails = ~pl.col("valid") | (pl.col("output") != pl.col("kept_output"))
    failing = ran.filter(fails.fill_null(True)).select("problem", "test", "solution", "right").unique()
    of_wrong = failing.filter(~pl.col("right"))
    by_made = of_wrong.join(made, on=["problem", "test"], how="semi")
    by_given = of_wrong.join(made, on=["problem", "test"], how="anti")
    of_others = by_made.filter(pl.len().over("problem", "test") > 1)  # such a test would be kept without it, too
    solutions = runs.select(*_SOLUTION, "right").unique()
    wrong, right = solutions.filter(~pl.col("right")), solutions.filter("right")
    passed = right.join(failing.filter("right"), on=_SOLUTION, how="anti").height

    def caught(name: str, title: str, how: str, *by: pl.DataFrame) -> Figure:
        hits = wrong.join(pl.concat(by).select(_SOLUTION), on=_SOLUTION, how="semi").height
        return share_figure(f"tests.{name}", title, hits, wrong.height, how, Needs.RUN)

    without_own_tests = "left out: a wrong solution that only tests made against it catch counts as missed"
    by_right = "solutions that the source calls right, on all tests of their problem; they had a vote on these tests"
    return [
        share_figure("tests.tpr", "Right solutions that pass (TPR)", passed, right.height, by_right, Needs.RUN),
        caught("tnr", "Wrong solutions caught (TNR)", "of those that the source calls wrong", by_given, by_made),
        caught("tnr.left_out", "the same, each left out of making tests", without_own_tests, by_given, of_others),
        caught("tnr.given", "the same, by the source's own tests", "by tests of the source that stayed", by_given),
    ]


MEASURED = ("worth", "planted", "labels", "tests")
"""Sections measured on the set itself."""


def page(receipt: Receipt) -> str:
    """Return the text of RECEIPT.md."""
    notes: dict[str, dict[str, None]] = {}
    for figure in receipt.figures:
        notes.setdefault(figure.section, {})[f"{figure.how[:1].upper()}{figure.how[1:]}."] = None
    return render_template(Path(__file__).with_name("receipt.md.jinja"), receipt=receipt, notes=notes)
