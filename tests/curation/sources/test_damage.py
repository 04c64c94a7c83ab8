"""Every fault of a row or a file, in every format: read rightly, or set aside for one reason; its neighbours stay."""

import gzip
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow
import pyarrow.parquet
import pytest
import zstandard

from curation.config import Source
from curation.records import DROPPED, SourceError
from curation.sources.problems import problem_rows
from curation.sources.reading import MAX_KEPT, QUARANTINE, Part, read_parts, read_source
from curation.sources.rows import Row
from tests.curation.sources.reading import source

FIRST, LAST = ("What is 1 + 1?", "2"), ("What is 2 + 2?", "4")


def sources(path: str, kind: str, **changes: Any) -> Source:
    return source(path, kind, **{"columns": {"answer": "answer"}, "bad_rows": 100, **changes})


def set_aside(wanted: Source, folder: Path, batch_rows: int = 1000) -> tuple[list[tuple[str, str]], pl.DataFrame]:
    """The sound rows and the others, after a look that every row of the source is one or the other."""

    def build(rows: list[Row], positions: Sequence[int]) -> pl.DataFrame:
        return problem_rows(wanted, rows, positions)

    parts: list[Part[pl.DataFrame]] = list(read_parts(wanted, folder, batch_rows, build))
    sound = pl.concat(part.built for part in parts)
    bad = pl.concat(part.quarantine for part in parts)
    assert sound.height + bad.height == sum(part.rows for part in parts)
    if wanted.quota is None:
        assert sorted([*sound["row"], *bad["row"]]) == list(range(sound.height + bad.height))
    dropped = pl.concat(part.dropped for part in parts)
    assert (bad.schema, dropped.schema) == (QUARANTINE, DROPPED)
    assert dropped["row"].to_list() == bad["row"].to_list()
    evidence = bad.select(pl.format("{}, line {}: {}", "file", "line", "reason")).to_series().to_list()
    assert dropped.select("stage", "reason", "evidence").rows() == [("sources", "bad_row", why) for why in evidence]
    return list(sound.select("statement", "answer").iter_rows()), bad


def check(wanted: Source, folder: Path, said: str | None, read: tuple[str, str] | None = None) -> pl.DataFrame:
    """The row between `FIRST` and `LAST` is read as ``read``, or set aside for a reason that has ``said`` in it."""
    sound, bad = set_aside(wanted, folder)
    assert sound == [FIRST, *([read] if read else []), LAST]
    assert [said in reason for reason in bad["reason"]] == ([] if said is None else [True]), bad["reason"].to_list()
    strict = wanted.model_copy(update={"bad_rows": 0})
    if said is None:
        assert len(pl.concat(read_source(strict, folder, 100))) == len(sound)
    else:
        with pytest.raises(SourceError, match="or set `bad_rows = 100` for source s") as caught:
            list(read_source(strict, folder, 100))
        assert said.partition(" (")[0] in str(caught.value)
        assert "\n" not in str(caught.value)
    return bad


def json_line(problem: Any, answer: Any) -> bytes:
    return json.dumps({"problem": problem, "answer": answer}).encode() + b"\n"


LONG = b'{"problem": "q", "n": 12345678901234567890, "extra": '
DEEP = b"[" * 100_000 + b"]" * 100_000
JSON_FAULTS: dict[str, tuple[bytes, str | None, tuple[str, str] | None]] = {
    "NUL byte": (b'{"problem": "q\x00", "answer": "1"}\n', "not JSON", None),
    "half a pair": (b'{"problem": "q\\ud800", "answer": "1"}\n', "surrogate in string", None),
    "half a pair as bytes": (b'{"problem": "q\xed\xa0\x80", "answer": "1"}\n', "not valid UTF-8", None),
    "an object": (json_line("q", {"a": 1}), "`answer` should be text, but is dict", None),
    "a list": (json_line("q", ["1"]), "`answer` should be text, but is a list", None),
    "5,000 digits": (b'{"problem": "q", "answer": ' + b"1" * 5000 + b"}\n", "number is infinity", None),
    "100,000 brackets": (b'{"problem": "q", "answer": ' + DEEP + b"}\n", "depth limit", None),
    "1,000 brackets and a long integer": (LONG + DEEP[99_000:101_000] + b"}\n", "nested more than 300", None),
    "no object": (b'"text"\n', "expected a JSON object", None),
    "a mark": (b"\xef\xbb\xbf" + json_line("q", "1"), "not JSON", None),
    "CRLF": (json_line("q", "1").replace(b"\n", b"\r\n"), None, ("q", "1")),
    "cut": (json_line("q", "1")[:-8] + b"\n", "not JSON", None),
    "long": (json_line("q", "1" * 3_000_000)[:-2] + b"\n", "not JSON (unexpected end", None),
}


@pytest.mark.parametrize("fault", JSON_FAULTS)
def test_a_line_of_json(fault: str, tmp_path: Path) -> None:
    line, said, read = JSON_FAULTS[fault]
    (tmp_path / "x.jsonl").write_bytes(json_line(*FIRST) + line + json_line(*LAST))
    bad = check(sources("x.jsonl", "jsonl"), tmp_path, said, read)
    assert [*bad["raw"]] == ([line[:MAX_KEPT]] if said else [])
    assert all(("the first 1,048,576 are kept" in reason) == (fault == "long") for reason in bad["reason"])
    assert [*bad["line"]] == ([2] if said else [])


CSV_FAULTS: dict[str, tuple[bytes, str | None, tuple[str, str] | None]] = {
    "NUL": (b"q\x00,1\n", None, ("q\0", "1")),
    "too few": (b"q\n", "fewer fields than the header's 2", None),
    "too many": (b"q,1,2\n", "more fields than the header's 2", None),
    "a blank line": (b"\n", None, None),
    "lines within": (b'"q\n1,2\n""r""",1\n', None, ('q\n1,2\n"r"', "1")),
}


@pytest.mark.parametrize("fault", CSV_FAULTS)
def test_a_row_of_csv(fault: str, tmp_path: Path) -> None:
    line, said, read = CSV_FAULTS[fault]
    content = b"problem,answer\n" + ",".join(FIRST).encode() + b"\n" + line + ",".join(LAST).encode() + b"\n"
    (tmp_path / "x.csv").write_bytes(content)
    bad = check(sources("x.csv", "csv"), tmp_path, said, read)
    assert [json.loads(raw) for raw in bad["raw"]] == ([line.decode().strip().split(",")] if said else [])


@pytest.mark.parametrize("broken", [b'"open,1\n', b'"q"r,1\n', b"caf\xe9,1\n"])
def test_a_csv_file_with_a_broken_quote_or_text_is_refused(broken: bytes, tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_bytes(b"problem,answer\na,1\n" + broken + b"e,5\n")
    with pytest.raises(SourceError, match=r"x\.csv, line \d: not readable as CSV"):
        set_aside(sources("x.csv", "csv"), tmp_path)


def raw_strings(value: bytes) -> bytes:
    """A parquet file with a text of these bytes, which no writer of texts would write."""
    binary = pyarrow.array([FIRST[1].encode(), value, LAST[1].encode()], pyarrow.binary())
    texts = pyarrow.Array.from_buffers(pyarrow.string(), 3, binary.buffers())
    sink = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.table({"problem": texts, "answer": texts}), sink)
    return sink.getvalue()


CONTENT = b"".join(json_line(f"What is {i} + {i * 2654435761 % 2**32}?", str(i)) for i in range(3000))


def damaged_parquet() -> bytes:
    """A file whose second row group is overwritten."""
    sink = io.BytesIO()
    rows = pl.DataFrame({"problem": [f"What is {i} + {i * 7919}?" for i in range(900)], "answer": ["1"] * 900})
    rows.write_parquet(sink, row_group_size=300, compression="zstd", statistics=False)
    group = pyarrow.parquet.ParquetFile(sink).metadata.row_group(1).column(0)
    start = group.dictionary_page_offset or group.data_page_offset
    content = bytearray(sink.getvalue())
    content[start : start + group.total_compressed_size] = b"\xff" * group.total_compressed_size
    return bytes(content)


FILES: dict[str, tuple[str, bytes, str]] = {
    "a cut gzip": ("x.jsonl.gz", gzip.compress(CONTENT)[:-400], "damaged"),
    "a gzip of another checksum": ("x.jsonl.gz", gzip.compress(CONTENT)[:-8] + bytes(8), "damaged"),
    "a cut zstandard": ("x.jsonl.zst", zstandard.compress(CONTENT)[:-400], "damaged"),
    "no gzip": ("x.jsonl.gz", CONTENT[:500], "damaged"),
    "no parquet": ("x.parquet", b"PAR1" + b"x" * 100, "not a readable parquet file"),
    "a parquet file without its footer": ("x.parquet", raw_strings(b"q")[:-40], "not a readable parquet file"),
    "a parquet file with a damaged row group": ("x.parquet", damaged_parquet(), "damaged"),
    "a parquet file with text that is not UTF-8": ("x.parquet", raw_strings(b"caf\xe9"), "a text is not UTF-8"),
    "a header with an open quote": ("x.csv", b'"problem,answer\nq,1\n', "not readable as CSV"),
    "a list that is cut": ("x.json", b'[{"problem": "q", "answer": "1"}, {"pro', "not a JSON list"),
}


@pytest.mark.parametrize("fault", FILES)
def test_a_damaged_file_is_refused_in_one_sentence(fault: str, tmp_path: Path) -> None:
    name, content, said = FILES[fault]
    kind = {"json": "jsonl"}.get(name.split(".")[1], name.split(".")[1])
    (tmp_path / name).write_bytes(content)
    with pytest.raises(SourceError, match=said) as caught:
        set_aside(sources(name, kind, bad_rows=1000), tmp_path)
    assert name in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_that_is_a_list_is_read_item_by_item(tmp_path: Path) -> None:
    items = [{"problem": "a", "answer": 10**30}, 5, {"problem": "b", "answer": "2"}, ["c"]]
    for name, pack in (("x.json", bytes), ("x.json.gz", gzip.compress)):
        (tmp_path / name).write_bytes(pack(b"\xef\xbb\xbf\n" + json.dumps(items, indent=2).encode()))
        sound, bad = set_aside(sources(name, "jsonl"), tmp_path)
        assert sound == [("a", str(10**30)), ("b", "2")]
        assert bad.select("line", "raw").rows() == [(2, b"5"), (4, b'["c"]')]


def test_positions_and_the_limit_go_on_from_batch_to_batch(tmp_path: Path) -> None:
    lines = [json_line(f"What is 1 + {i}?", i + 1) if i % 3 else b"{%d\n" % i for i in range(10)]
    (tmp_path / "x.jsonl").write_bytes(b"".join(lines))
    _, bad = set_aside(sources("x.jsonl", "jsonl", bad_rows=4), tmp_path, batch_rows=4)
    assert bad.select("file", "row").rows() == [("x.jsonl", row) for row in (0, 3, 6, 9)]
    with pytest.raises(SourceError, match=r"source s: more than 3 rows .*x\.jsonl, line 10: .*raise its `bad_rows`"):
        set_aside(sources("x.jsonl", "jsonl", bad_rows=3), tmp_path, batch_rows=4)
    first, _ = set_aside(sources("x.jsonl", "jsonl", limit=2), tmp_path)
    assert len(first) == 1
