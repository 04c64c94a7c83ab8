"""Fills the interpreter's free memory, so that forks get new pages.

A free page that is shared with a fork is copied when the fork uses it, which takes twice as long as a new page. So the
holes that imports and compiling left are filled for good with blocks of up to 512 bytes that are never written to.

Invariants: at most a block or two of each size touches unused memory; with an allocator other than CPython's (pools of
16 KiB) nothing breaks, and little is gained.
"""

from __future__ import annotations

from . import kernel

POOL = 1 << 14
"""Bytes of an aligned pool of CPython's allocator, whose blocks have one size."""
SIZE_STEP, MAX_BLOCK_BYTES, MAX_BLOCKS = 16, 512, 1 << 17
"""Bytes between block sizes, bytes of the largest block, max blocks per size."""
_blocks: list[object] = []


def _fill(size: int) -> None:
    """Take blocks of this size until one is in an unused pool."""
    last = 0
    for _ in range(MAX_BLOCKS):
        block = (
            object()
            if size == SIZE_STEP
            else float(size)
            if size == 2 * SIZE_STEP
            else bytes(size - bytes.__basicsize__)
        )
        pool = id(block) & -POOL
        if pool != last and not kernel.resident(pool + POOL // 2):
            break
        last = pool
        _blocks.append(block)


def fill_pools() -> None:
    """Fill the whole pools that are free."""
    _fill(MAX_BLOCK_BYTES)


def fill_all() -> None:
    """Fill holes of every size, so that later allocations get new memory."""
    for size in range(MAX_BLOCK_BYTES, 0, -SIZE_STEP):
        _fill(size)
