"""Text in base64 of a compressed pickle, as LiveCodeBench's private tests are.

Invariant: nothing is unpickled; a pickle of anything but one text is refused, so that none of its code runs.
"""

from __future__ import annotations

import base64
import pickletools
import zlib

MAX_UNPACKED = 1 << 29
"""Bytes that one text may unpack to."""
_TEXTS = frozenset("UNICODE BINUNICODE SHORT_BINUNICODE BINUNICODE8 STRING BINSTRING SHORT_BINSTRING".split())
_AROUND = frozenset("PROTO FRAME PUT BINPUT LONG_BINPUT MEMOIZE STOP".split())
"""Pickle instructions that push a text, or may surround it."""


def unpack_text(text: str, limit: int = MAX_UNPACKED) -> str:
    """Return the text in base64 of a compressed pickle.

    Raises:
        ValueError: it is packed differently, no text, or larger than ``limit``.
    """
    try:
        return _pickled_text(_inflate(base64.b64decode(text, validate=True), limit))
    except (zlib.error, OverflowError) as error:
        raise ValueError(str(error)) from error


def _inflate(data: bytes, limit: int) -> bytes:
    decompressor = zlib.decompressobj()
    content = decompressor.decompress(data, limit)
    if decompressor.unconsumed_tail:
        raise ValueError(f"more than {limit:,} bytes unpacked")
    if not decompressor.eof:
        raise ValueError("cut off")
    return content


def _pickled_text(data: bytes) -> str:
    texts = []
    for instruction, argument, _ in pickletools.genops(data):
        if instruction.name in _TEXTS:
            texts.append(str(argument))
        elif instruction.name not in _AROUND:
            raise ValueError(f"holds {instruction.name}, not text")
    if len(texts) != 1:
        raise ValueError(f"holds {len(texts)} texts, not one")
    return texts[0]
