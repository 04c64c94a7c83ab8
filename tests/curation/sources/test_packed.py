"""Packed text: LiveCodeBench's way is read, and nothing in a pickle can run."""

from __future__ import annotations

import base64
import os
import pickle
import zlib
from pathlib import Path

import pytest

from curation.sources.packed import unpack_text


def packed(data: bytes) -> str:
    return base64.b64encode(zlib.compress(data)).decode()


def test_pickled_text_is_unpacked() -> None:
    assert unpack_text(packed(pickle.dumps('[{"input": "1"}]'))) == '[{"input": "1"}]'


class Attack:
    """An object whose unpickling makes a file."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.mkdir, (str(self._path),)


def test_code_in_a_pickle_does_not_run(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"names posix\.mkdir"):
        unpack_text(packed(pickle.dumps(Attack(tmp_path / "made"))))
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (packed(pickle.dumps([1, 2])), "holds list, not text"),
        (packed(b""), "."),
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
        unpack_text(packed(b"0" * 1_000_000), most=1_000)
