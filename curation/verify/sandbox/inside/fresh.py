"""Take the interpreter's free memory out of use, so that whatever a fork asks for later is new.

Free memory is shared with forks, and a page of it that a fork puts to use is copied first, which takes more than twice
as long as a new page. So the holes that importing and compiling left are filled for good with blocks (up to 512 bytes,
from the interpreter's own allocator) that no one writes to.

Invariants: no memory is touched that was not before, but for a block or two of each size; with an unexpected allocator
(the expected one has pools of 16 KiB) nothing breaks, and little is gained.
"""

from __future__ import annotations

from . import kernel

POOL = 1 << 14
"""Bytes of an aligned pool of the interpreter's allocator; its blocks have one size."""
STEP, LARGEST, MOST = 16, 512, 1 << 17
"""Bytes between sizes of blocks, of the largest; max blocks taken of one size."""
_blocks: list[object] = []


def _fill(size: int) -> None:
    """Take blocks of this size until one is in an unused pool."""
    last = 0
    for _ in range(MOST):
        block = object() if size == STEP else float(size) if size == 2 * STEP else bytes(size - bytes.__basicsize__)
        pool = id(block) & -POOL
        if pool != last and not kernel.resident(pool + POOL // 2):
            break
        last = pool
        _blocks.append(block)


def fill_pools() -> None:
    """Fill the whole pools that are free."""
    _fill(LARGEST)


def fill_all() -> None:
    """Fill holes of every size, so that later allocations get new memory."""
    for size in range(LARGEST, 0, -STEP):
        _fill(size)
