"""The scratch folder of a slot: files put into it, and everything taken out again."""

from __future__ import annotations

import os


def place(folder: str, names: list[str], descriptors: list[int], mode: int) -> None:
    """Copy open files into the folder, under these names."""
    for name, descriptor in zip(names, descriptors, strict=True):
        path = os.path.join(folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        out = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode)
        copy_bytes(descriptor, out)
        os.close(out)


def empty(folder: str) -> None:
    """Remove what lies in it, also what was made unreadable."""
    with os.scandir(folder) as entries:
        children = list(entries)
    for entry in children:
        if entry.is_dir(follow_symlinks=False):
            os.chmod(entry.path, 0o700)
            empty(entry.path)
            os.rmdir(entry.path)
        else:
            os.unlink(entry.path)


def used_bytes(folder: str, apart: bool) -> int:
    """Return bytes of the files in it; ``apart``: it is a file system of its own."""
    if apart:
        state = os.statvfs(folder)
        return (state.f_blocks - state.f_bfree) * state.f_frsize
    return sum(entry.stat(follow_symlinks=False).st_blocks * 512 for entry in os.scandir(folder))


def copy_bytes(source: int, target: int) -> None:
    """Copy a whole file into another."""
    size, place = os.fstat(source).st_size, 0
    while place < size:
        sent = os.sendfile(target, source, place, min(size - place, 1 << 24))
        if sent == 0:
            return
        place += sent
