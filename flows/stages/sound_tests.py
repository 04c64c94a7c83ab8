"""Inputs that were made for one problem, and those of them on which all voting solutions agree."""

from __future__ import annotations

import hashlib
import zlib
from dataclasses import dataclass

import polars as pl

LARGE_BYTES = 256 << 10
"""Larger inputs ask for speed: few are made, fewer kept (`keep_large`)."""


@dataclass(frozen=True, slots=True)
class SoundTest:
    """A made input on which all voting solutions agree; ``failing`` are those known to be wrong that fail on it,
    ``killed`` the mutants.

    Input and output are compressed (zlib), so that large ones of many rounds do not add up in memory. ``size`` is the
    input's, in bytes.
    """

    index: int
    packed: bytes
    output: bytes
    origin: str
    shape: str
    size: int
    failing: frozenset[int]
    killed: frozenset[int]
    runs: pl.DataFrame


@dataclass(frozen=True, slots=True)
class NewInput:
    """An input that was made: where it comes from, and its shape."""

    text: str
    origin: str
    shape: str


def digest(text: str) -> bytes:
    """Return what names a text; large inputs are not kept for comparison."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def packed(text: str) -> bytes:
    """Return a text compressed."""
    return zlib.compress(text.encode("utf-8", "surrogatepass"), 1)


def unpacked(data: bytes) -> str:
    """Return a text that was compressed."""
    return zlib.decompress(data).decode("utf-8", "surrogatepass")
