"""Compiled programs are kept on disk, within a number of bytes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from curation.verify.programs.kept import KeptPrograms
from curation.verify.sandbox import CompileResult, Ending, RunResult

RAN = RunResult(Ending.EXITED, 0, None, b"o", b"e", 0.1, 0.1, 10)


def compiled(size: int) -> CompileResult:
    return CompileResult(True, "", b"x" * size, "", RAN)


def on_disk(kept: KeptPrograms) -> int:
    assert kept._folder is not None
    return sum(file.stat().st_size for file in Path(kept._folder.path).iterdir())


def test_the_newest_are_kept_within_a_number_of_bytes() -> None:
    kept = KeptPrograms(100_000)
    for number in range(20):
        kept.put(str(number), compiled(30_000 + number))
        assert on_disk(kept) == kept.bytes <= 100_000
    assert [name for name in map(str, range(20)) if kept.get(name)] == ["17", "18", "19"]
    assert kept.get("19") == replace(compiled(30_019), run=replace(RAN, stdout=b"", stderr=b""))
    kept.put("too large", compiled(100_001))
    assert kept.get("too large") is None
    folder = Path(kept._folder.path)  # type: ignore[union-attr]
    kept.close()
    assert not folder.exists()
    assert kept.get("19") is None


def test_one_that_was_removed_is_compiled_again() -> None:
    kept = KeptPrograms()
    kept.put("a", compiled(10_000))
    assert kept._folder is not None
    (Path(kept._folder.path) / "a").unlink()
    assert (kept.get("a"), kept.bytes) == (None, 0)
    kept.close()
