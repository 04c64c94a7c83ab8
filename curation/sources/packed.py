"""Text that a source packed: base64 of compressed bytes of a pickled text, as LiveCodeBench's private tests are.

Invariant: of a pickle nothing but text is taken and no name in it is looked up, so none of its code can run.
"""

from __future__ import annotations

import base64
import io
import pickle
import zlib
from typing import Any

MOST_UNPACKED = 1 << 29
"""Bytes that one text may unpack to."""


def unpack_text(text: str, most: int = MOST_UNPACKED) -> str:
    """Return the text that was pickled, compressed and written in base64.

    Raises:
        ValueError: it is not packed so, unpacks to more than ``most`` bytes, or holds something else than text.
    """
    try:
        return _unpickle(_inflate(base64.b64decode(text, validate=True), most))
    except (zlib.error, pickle.UnpicklingError, EOFError, IndexError, AttributeError) as error:
        raise ValueError(str(error)) from error


def _inflate(data: bytes, most: int) -> bytes:
    decompressor = zlib.decompressobj()
    content = decompressor.decompress(data, most)
    if decompressor.unconsumed_tail:
        raise ValueError(f"more than {most:,} bytes unpacked")
    if not decompressor.eof:
        raise ValueError("cut off")
    return content


def _unpickle(data: bytes) -> str:
    value = _TextUnpickler(io.BytesIO(data)).load()
    if not isinstance(value, str):
        raise ValueError(f"holds {type(value).__name__}, not text")
    return value


class _TextUnpickler(pickle.Unpickler):
    """An unpickler that looks up no class and no function."""

    def find_class(self, module_name: str, global_name: str, /) -> Any:
        raise pickle.UnpicklingError(f"names {module_name}.{global_name}")
