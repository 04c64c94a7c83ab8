"""Every fault of a row or a file, in every format: read rightly, or set aside for one reason; its neighbours stay."""

from __future__ import annotations

import bz2
import contextlib
import gzip
import io
import json
import lzma
import subprocess
import sys
import zipfile
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow
import pyarrow.parquet
import pytest
import zstandard

from curation.config import ProblemColumns, Source
from curation.records import SourceError
from curation.sources.problems import problem_rows, read_source
from curation.sources.quarantine import MOST_KEPT, Part, read_parts
from curation.sources.rows import Row

FIRST, LAST = ("What is 1 + 1?", "2"), ("What is 2 + 2?", "4")


def sources(path: str, kind: str, **changes: Any) -> Source:
    columns = ProblemColumns(statement="problem", answer="answer")
    table = {"name": "s", "kind": kind, "path": path, "columns": columns, "bad_rows": 100}
    return Source.model_validate({**table, **changes})


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
    assert pl.concat(part.dropped for part in parts)["row"].to_list() == bad["row"].to_list()
    return list(sound.select("statement", "answer").iter_rows()), bad


def check(wanted: Source, folder: Path, said: str | None, read: tuple[str, str] | None = None) -> pl.DataFrame:
    """The row between `FIRST` and `LAST` is read as ``read``, or set aside for a reason that has ``said`` in it."""
    sound, bad = set_aside(wanted, folder)
    assert sound == [FIRST, *([read] if read else []), LAST]
    assert [said in reason for reason in bad["reason"]] == ([] if said is None else [True]), bad["reason"].to_list()
    if said is None:
        assert len(pl.concat(read_source(wanted, folder, 100))) == len(sound)
    else:
        with pytest.raises(SourceError) as caught:
            list(read_source(wanted, folder, 100))
        assert said.partition(" (")[0] in str(caught.value)
        assert "\n" not in str(caught.value)
    return bad


def json_line(problem: Any, answer: Any) -> bytes:
    return json.dumps({"problem": problem, "answer": answer}).encode() + b"\n"


DEEP = b"[" * 100_000 + b"]" * 100_000
JSON_FAULTS: dict[str, tuple[bytes, str | None, tuple[str, str] | None]] = {
    "NUL byte": (b'{"problem": "q\x00", "answer": "1"}\n', "a NUL byte", None),
    "NUL escaped": (json_line("q\0", "1"), None, ("q\0", "1")),
    "NUL in the answer": (json_line("q", "\0"), None, ("q", "\0")),
    "half a pair": (b'{"problem": "q\\ud800", "answer": "1"}\n', "half of a surrogate pair", None),
    "half a pair as bytes": (b'{"problem": "q\xed\xa0\x80", "answer": "1"}\n', "not UTF-8", None),
    "latin-1": (b'{"problem": "caf\xe9", "answer": "1"}\n', "not UTF-8", None),
    "an object": (json_line("q", {"a": 1}), "`answer` should be text, but is dict", None),
    "a list": (json_line("q", ["1"]), "`answer` should be text, but is a list", None),
    "a number": (json_line("q", 7), None, ("q", "7")),
    "a bool": (json_line("q", True), None, ("q", "True")),
    "1e400": (b'{"problem": "q", "answer": 1e400}\n', "number is infinity", None),
    "5,000 digits": (b'{"problem": "q", "answer": ' + b"1" * 5000 + b"}\n", "number is infinity", None),
    "300 digits": (b'{"problem": "q", "answer": ' + b"1" * 300 + b"}\n", None, ("q", "1" * 300)),
    "100,000 brackets": (b'{"problem": "q", "answer": ' + DEEP + b"}\n", "depth limit", None),
    "1,000 brackets": (
        b'{"problem": "q", "extra": ' + DEEP[99_000:101_000] + b"}\n",
        "nested more than 300",
        None,
    ),
    "1,000 brackets and a long integer": (
        b'{"problem": "q", "n": 12345678901234567890, "extra": ' + DEEP[99_000:101_000] + b"}\n",
        "nested more than 300",
        None,
    ),
    "no object": (b'"text"\n', "a JSON object is wanted", None),
    "a number alone": (b"5\n", "a JSON object is wanted", None),
    "null": (b"null\n", "a JSON object is wanted", None),
    "a mark": (b"\xef\xbb\xbf" + json_line("q", "1"), "a byte order mark", None),
    "CRLF": (json_line("q", "1").replace(b"\n", b"\r\n"), None, ("q", "1")),
    "a separator of lines": (b'{"problem": "q\xe2\x80\xa8r", "answer": "1"}\n', None, ("q\u2028r", "1")),
    "two objects": (json_line("q", "1").rstrip() + json_line("q", "1"), "not JSON", None),
    "cut": (json_line("q", "1")[:-8] + b"\n", "not JSON", None),
    "long": (json_line("q", "1" * 3_000_000)[:-2] + b"\n", "not JSON (unexpected end", None),
}


@pytest.mark.parametrize("name", ["x.jsonl", "x.jsonl.gz"])
@pytest.mark.parametrize("fault", JSON_FAULTS)
def test_a_line_of_json(name: str, fault: str, tmp_path: Path) -> None:
    line, said, read = JSON_FAULTS[fault]
    content = json_line(*FIRST) + line + json_line(*LAST)
    (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    bad = check(sources(name, "jsonl"), tmp_path, said, read)
    assert [*bad["raw"]] == ([line[:MOST_KEPT]] if said else [])
    assert all(("the first 1,048,576 are kept" in reason) == (fault == "long") for reason in bad["reason"])
    assert [*bad["line"]] == ([2] if said else [])


CSV_FAULTS: dict[str, tuple[bytes, str | None, tuple[str, str] | None]] = {
    "NUL": (b"q\x00,1\n", None, ("q\0", "1")),
    "half a pair": (b"q\xed\xa0\x80,1\n", "not UTF-8", None),
    "latin-1": (b"caf\xe9,1\n", "not UTF-8", None),
    "too few": (b"q\n", "fewer fields than the header's 2", None),
    "too many": (b"q,1,2\n", "more fields than the header's 2", None),
    "text behind a quote": (b'"q"r,1\n', "not a readable CSV row", None),
    "a mark": (b"\xef\xbb\xbfq,1\n", None, ("\ufeffq", "1")),
    "CRLF": (b"q,1\r\n", None, ("q", "1")),
    "a quote that never closes": (b'"q,1\n', "a quote that never closes", None),
    "a blank line": (b"\n", None, None),
    "lines within": (b'"q\n1,2\n""r""",1\n', None, ('q\n1,2\n"r"', "1")),
}


@pytest.mark.parametrize("name", ["x.csv", "x.csv.gz", "x.csv.bz2"])
@pytest.mark.parametrize("fault", CSV_FAULTS)
def test_a_row_of_csv(name: str, fault: str, tmp_path: Path) -> None:
    line, said, read = CSV_FAULTS[fault]
    content = b"problem,answer\n" + ",".join(FIRST).encode() + b"\n" + line + ",".join(LAST).encode() + b"\n"
    pack: Callable[[bytes], bytes] = {".gz": gzip.compress, ".bz2": bz2.compress}.get(Path(name).suffix, bytes)
    (tmp_path / name).write_bytes(pack(content))
    bad = check(sources(name, "csv"), tmp_path, said, read)
    assert [*bad["raw"]] == ([line] if said else [])


def test_a_quote_that_closes_at_another_row_takes_no_other_row_with_it(tmp_path: Path) -> None:
    rows = [f'"What is {i} + 1, and why?",{i}\n'.encode() for i in range(500)]
    rows[5] = b'"open,1\n'
    rows[200] = b'"open too,1\n'
    rows[499] = b'"open at the end,1\n'
    (tmp_path / "x.csv").write_bytes(b"problem,answer\n" + b"".join(rows))
    sound, bad = set_aside(sources("x.csv", "csv"), tmp_path, batch_rows=100)
    assert [answer for _, answer in sound] == [str(i) for i in range(500) if i not in (5, 200, 499)]
    assert bad["line"].to_list() == [7, 202, 501]
    assert bad["raw"].to_list() == [rows[5], rows[200], rows[499]]


def test_the_halves_of_a_broken_text_of_two_lines_are_no_rows(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_bytes(b'problem,answer\na,1\n"b,\nc"d,2\ne,5\n')
    sound, bad = set_aside(sources("x.csv", "csv"), tmp_path)
    assert sound == [("a", "1"), ("e", "5")]
    assert bad["line"].to_list() == [3, 4]


def arrow_file(values: Any, kind: Any) -> bytes:
    table = pyarrow.table({"problem": pyarrow.array([FIRST[0], "q", LAST[0]]), "answer": pyarrow.array(values, kind)})
    sink = io.BytesIO()
    pyarrow.parquet.write_table(table, sink, row_group_size=2)
    return sink.getvalue()


def raw_strings(value: bytes) -> bytes:
    """A parquet file with a text of these bytes, which no writer of texts would write."""
    binary = pyarrow.array([FIRST[1].encode(), value, LAST[1].encode()], pyarrow.binary())
    texts = pyarrow.Array.from_buffers(pyarrow.string(), 3, binary.buffers())
    return arrow_file(texts, None)


PARQUET_FAULTS: dict[str, tuple[Callable[[], bytes], str | None, tuple[str, str] | None]] = {
    "NUL": (lambda: arrow_file([FIRST[1], "\0", LAST[1]], pyarrow.string()), None, ("q", "\0")),
    "half a pair": (lambda: raw_strings(b"\xed\xa0\x80"), "not UTF-8", None),
    "latin-1": (lambda: raw_strings(b"caf\xe9"), "not UTF-8", None),
    "numbers": (lambda: arrow_file([2, 7, 4], pyarrow.int64()), None, ("q", "7")),
    "a list": (lambda: arrow_file([None, ["7"], None], pyarrow.list_(pyarrow.string())), "is a list", None),
}


@pytest.mark.parametrize("fault", PARQUET_FAULTS)
def test_a_row_of_parquet(fault: str, tmp_path: Path) -> None:
    content, said, read = PARQUET_FAULTS[fault]
    (tmp_path / "x.parquet").write_bytes(content())
    if fault != "a list":
        check(sources("x.parquet", "parquet"), tmp_path, said, read)
        return
    sound, bad = set_aside(sources("x.parquet", "parquet"), tmp_path)
    assert sound == [(FIRST[0], None), (LAST[0], None)]
    assert bad["reason"].str.contains("`answer` should be text, but is a list").to_list() == [True]


def test_the_rows_of_a_damaged_row_group_are_counted_one_by_one(tmp_path: Path) -> None:
    rows = pl.DataFrame({"problem": [f"What is {i} + {i * 7919}?" for i in range(900)], "answer": ["1"] * 900})
    rows.write_parquet(tmp_path / "x.parquet", row_group_size=300, compression="zstd", statistics=False)
    content = bytearray((tmp_path / "x.parquet").read_bytes())
    group = pyarrow.parquet.ParquetFile(tmp_path / "x.parquet").metadata.row_group(1).column(0)
    start = group.dictionary_page_offset or group.data_page_offset
    content[start : start + group.total_compressed_size] = b"\xff" * group.total_compressed_size
    (tmp_path / "x.parquet").write_bytes(content)
    sound, bad = set_aside(sources("x.parquet", "parquet", bad_rows=300), tmp_path, batch_rows=70)
    assert [statement for statement, _ in sound] == [*rows["problem"][:300], *rows["problem"][600:]]
    assert bad["line"].to_list() == list(range(301, 601))
    assert bad["reason"].str.contains("row group 1 of a parquet file cannot be read").all()
    with pytest.raises(SourceError, match="more than 299 rows cannot be read"):
        set_aside(sources("x.parquet", "parquet", bad_rows=299), tmp_path)


ROWS = [(f"What is {i} + {i * 2654435761 % 2**32}?", str(i)) for i in range(30_000)]
"""So many that a part of them fills a block of bzip2."""
CONTENT = {
    "jsonl": b"".join(json_line(*row) for row in ROWS),
    "csv": b"problem,answer\n" + "".join(f"{question},{answer}\n" for question, answer in ROWS).encode(),
}
PACKERS: dict[str, tuple[Callable[[bytes], bytes], Callable[[], Any]]] = {
    "gz": (lambda content: gzip.compress(content, 1), lambda: zlib.decompressobj(31)),
    "bz2": (lambda content: bz2.compress(content, 1), bz2.BZ2Decompressor),
    "xz": (lambda content: lzma.compress(content, preset=0), lzma.LZMADecompressor),
    "zst": (zstandard.compress, lambda: zstandard.ZstdDecompressor().decompressobj()),
}


def unpacked(broken: bytes, packing: str) -> bytes:
    """What of a packed file can be had, a byte at a time."""
    reader, found = PACKERS[packing][1](), b""
    head = len(broken) - 5000
    pieces = [broken[:head], *(broken[at : at + 1] for at in range(head, len(broken)))]
    with contextlib.suppress(zlib.error, OSError, lzma.LZMAError, zstandard.ZstdError):
        for piece in pieces:
            found += reader.decompress(piece)
    return found


@pytest.mark.parametrize("packing", PACKERS)
@pytest.mark.parametrize("kind", ["jsonl", "csv"])
@pytest.mark.parametrize("cut", [4000, 3])
def test_a_packed_file_is_read_up_to_its_cut(packing: str, kind: str, cut: int, tmp_path: Path) -> None:
    broken = PACKERS[packing][0](CONTENT[kind])[:-cut]
    name = f"x.{kind}.{packing}"
    (tmp_path / name).write_bytes(broken)
    (tmp_path / f"y.{kind}.{packing}").write_bytes(PACKERS[packing][0](CONTENT[kind][:50_000].rpartition(b"\n")[0]))
    had = unpacked(broken, packing)
    whole = had.count(b"\n") - (kind == "csv")
    assert 10_000 < whole <= 30_000
    sound, bad = set_aside(sources(f"?.{kind}.{packing}", kind), tmp_path, batch_rows=10_000)
    assert sound[:whole] == ROWS[:whole]
    assert sound[whole:] == ROWS[: len(sound) - whole]  # of the file behind it
    assert len(sound) - whole > 500
    assert bad["raw"].to_list() == [had[had.rfind(b"\n") + 1 :]]
    assert bad["file"].to_list() == [name]
    assert "the file cannot be read to its end" in bad["reason"][0]
    with pytest.raises(SourceError, match=rf"{name}, line [0-9]+: the file cannot be read to its end"):
        list(read_source(sources(name, kind), tmp_path, 10_000))


def test_a_file_that_is_damaged_in_its_archive_is_read_up_to_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with zipfile.ZipFile(tmp_path / "x.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x.jsonl", CONTENT["jsonl"])
    content = bytearray((tmp_path / "x.zip").read_bytes())
    content[-5000:-4900] = b"\xff" * 100
    (tmp_path / "x.zip").write_bytes(content)
    url = f"zip://x.jsonl::{tmp_path / 'x.zip'}"
    for _ in range(2):  # fetched, and kept
        sound, bad = set_aside(sources(url, "jsonl", bad_rows=5000), tmp_path, batch_rows=10_000)
        assert sound[:20_000] == ROWS[:20_000]  # the last ones may be what the damage made of the text
        assert ["the file cannot be read to its end" in reason for reason in bad["reason"]][-1]
        assert bad["file"].to_list()[-1].startswith("zip://x.jsonl::")
    with pytest.raises(SourceError, match=r"zip://x\.jsonl::.*, line [0-9]+: "):
        list(read_source(sources(url, "jsonl"), tmp_path, 10_000))
    (tmp_path / "x.zip").write_bytes(content[:-3000])
    with pytest.raises(SourceError, match="File is not a zip file"):
        set_aside(sources(url, "jsonl"), tmp_path)


def test_a_checksum_that_does_not_fit_is_told(tmp_path: Path) -> None:
    packed = bytearray(gzip.compress(CONTENT["jsonl"][:1000].rpartition(b"\n")[0] + b"\n"))
    packed[-8] ^= 1
    (tmp_path / "x.jsonl.gz").write_bytes(packed)
    sound, bad = set_aside(sources("x.jsonl.gz", "jsonl"), tmp_path)
    assert sound == ROWS[: len(sound)]
    assert "CRC check failed" in bad["reason"][0]


FILES: dict[str, tuple[str, bytes, str]] = {
    "no gzip": ("gz.jsonl.gz", CONTENT["jsonl"][:500], "Not a gzipped file"),
    "no gzip of csv": ("gz.csv.gz", CONTENT["csv"][:500], "Not a gzipped file"),
    "no parquet": ("x.parquet", b"PAR1" + b"x" * 100, "not a readable parquet file"),
    "a parquet file without its footer": ("x.parquet", raw_strings(b"q")[:-40], "not a readable parquet file"),
    "an empty parquet file": ("x.parquet", b"", "not a readable parquet file"),
    "UTF-16": ("x.jsonl", CONTENT["jsonl"][:500].decode().encode("utf-16"), "UTF-16"),
    "a header of UTF-16": ("x.csv", CONTENT["csv"][:500].decode().encode("utf-16"), "not UTF-8), which is the header"),
    "a header with an open quote": (
        "x.csv",
        b'"problem,answer\nq,1\n',
        "a quote that never closes), which is the header",
    ),
    "a list that is cut": ("x.json", b'[{"problem": "q", "answer": "1"}, {"pro', "not a JSON list"),
}


@pytest.mark.parametrize("fault", FILES)
def test_a_file_that_cannot_be_read_is_one_row_beside_sound_files(fault: str, tmp_path: Path) -> None:
    name, content, said = FILES[fault]
    kind = {"json": "jsonl"}.get(name.split(".")[1], name.split(".")[1])
    ending = name.partition(".")[2]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(SourceError, match="no row of it can be read"):
        set_aside(sources(name, kind), tmp_path)
    for at, row in ((0, FIRST), (9, LAST)):
        path = tmp_path / f"{'az'[at > 0]}{at}.{ending}"
        table = pl.DataFrame([dict(zip(("problem", "answer"), row, strict=True))])
        if kind == "parquet":
            table.write_parquet(path)
        else:
            write = table.write_csv if kind == "csv" else table.write_json if ending == "json" else table.write_ndjson
            text = write()
            path.write_bytes(gzip.compress(text.encode()) if ending.endswith("gz") else text.encode())
    check(sources(f"*.{ending}", kind), tmp_path, said)


def test_a_file_that_is_a_list_is_read_item_by_item(tmp_path: Path) -> None:
    items = [{"problem": "a", "answer": 10**30}, 5, {"problem": "b", "answer": "2"}, ["c"]]
    for name, pack in (("x.json", bytes), ("x.json.gz", gzip.compress)):
        (tmp_path / name).write_bytes(pack(b"\xef\xbb\xbf\n" + json.dumps(items, indent=2).encode()))
        sound, bad = set_aside(sources(name, "jsonl"), tmp_path)
        assert sound == [("a", str(10**30)), ("b", "2")]
        assert bad.select("line", "raw").rows() == [(2, b"5"), (4, b'["c"]')]


def test_a_mark_at_the_front_of_a_file_is_no_fault(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_bytes(b"\xef\xbb\xbf" + json_line(*FIRST) + json_line(*LAST))
    check(sources("x.jsonl", "jsonl"), tmp_path, None)


def test_a_quota_draws_beside_bad_rows(tmp_path: Path) -> None:
    lines = [json_line(f"q{i}", str(i % 2)) for i in range(20)]
    lines[3] = b"{\n"
    (tmp_path / "x.jsonl").write_bytes(b"".join(lines))
    sound, bad = set_aside(sources("x.jsonl", "jsonl", quota={"rows": 7}), tmp_path)
    assert len(sound) == 7
    assert bad["row"].to_list() == [3]


OF_200_MB = """
import resource, sys
from pathlib import Path
from tests.curation.sources.test_damage import set_aside, sources
sound, bad = set_aside(sources(sys.argv[1], sys.argv[2]), Path(sys.argv[3]))
print(len(sound), bad.height, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
"""


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["jsonl", "csv"])
def test_a_bad_line_of_200_mb_takes_bounded_memory(kind: str, tmp_path: Path) -> None:
    head = b"problem,answer\n" if kind == "csv" else b""
    row = json_line(*FIRST) if kind == "jsonl" else ",".join(FIRST).encode() + b"\n"
    begin = b'"open' if kind == "csv" else b'{"problem": "open'
    with (tmp_path / f"x.{kind}").open("wb") as file:
        file.write(head + row + begin)
        for _ in range(200):
            file.write(b"x" * 1_000_000)
        file.write(b"\n" + row * 1000)
    command = [sys.executable, "-c", OF_200_MB, f"x.{kind}", kind, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    sound, bad, megabytes = map(int, done.stdout.split())
    assert (sound, bad) == (1001, 1)
    assert megabytes < 1500
