"""Packed text: LiveCodeBench's way is read, and nothing in a pickle can run."""

from __future__ import annotations

import base64
import os
import pickle
import resource
import zlib
from pathlib import Path

import pytest

from curation.sources.code_problems import unpack_text


def packed(data: bytes) -> str:
    return base64.b64encode(zlib.compress(data)).decode()


def test_pickled_text_is_unpacked() -> None:
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        for text in ("", "é\n\u2028😀" * 300, "x" * 70_000):
            assert unpack_text(packed(pickle.dumps(text, protocol))) == text


class Attack:
    """An object whose unpickling makes a file."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.mkdir, (str(self._path),)


def test_code_in_a_pickle_does_not_run(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="holds STACK_GLOBAL, not text"):
        unpack_text(packed(pickle.dumps(Attack(tmp_path / "made"))))
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (packed(pickle.dumps([1, 2])), "holds EMPTY_LIST, not text"),
        (packed(b""), "."),
        (packed(b"\x80\x04\x8c\x01a\x8c\x01b."), "holds 2 texts"),
        (packed(b"\x80\x04."), "holds 0 texts"),
        (packed(b"\x80\x02}K\x01K\x02s(K\x03d."), "holds EMPTY_DICT"),
        (packed(b"\x80\x04\x8d" + b"\xff" * 8 + b"a."), "."),  # a text of 2 ** 64 bytes
        (packed(b"L" + b"9" * 5000 + b"L\n."), "."),
        (packed(pickle.dumps("x" * 5000))[:-8], "."),
        ("no base64!", "."),
        (base64.b64encode(b"not compressed").decode(), "."),
    ],
)
def test_what_is_not_packed_so_is_refused(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        unpack_text(text)


def test_a_bomb_is_refused() -> None:
    with pytest.raises(ValueError, match="more than 1,000 bytes"):
        unpack_text(packed(b"0" * 1_000_000), limit=1_000)


def test_a_large_memo_index_takes_no_memory() -> None:
    """28 bytes took 1 GB: an unpickler makes room for as many entries as the index says."""
    text = packed(b"\x80\x02X\x01\x00\x00\x00ar\xff\xff\xff\x03.")
    limit = resource.getrlimit(resource.RLIMIT_AS)
    room = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize() + (256 << 20)
    resource.setrlimit(resource.RLIMIT_AS, (room, limit[1]))
    try:
        assert unpack_text(text) == "a"
    finally:
        resource.setrlimit(resource.RLIMIT_AS, limit)
