"""Fills, measures and empties a slot's scratch folder."""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import stat
import time

DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
BLOCK, UNREADABLE = 4096, 1 << 60
MAX_FILES = 20_000
"""Max files of a slot's file system; an ordinary folder with more counts as full."""
MAX_LIST_BYTES = 1 << 20
"""Max bytes of a folder's list of names: some 60,000 short or 4,000 of the longest."""
SWEEP_S = 0.5
"""Max seconds to empty a folder; a slower one is removed with its slot (a disk removes 200 folders a second)."""


def path_in(folder: str, name: str) -> str:
    """Return a file's path in the folder; raise ValueError if its name is invalid or leads out of it.

    Names come from data sets, and without namespaces the copying process could write elsewhere.
    """
    parts = name.split("/")
    if {"", ".", ".."} & set(parts) or "\0" in name:
        raise ValueError(f"a file is named {name!r}, which is no path in the program's folder")
    return os.path.join(folder, name)


def place(folder: str, names: list[str], descriptors: list[int], mode: int) -> None:
    """Copy open files into the folder under these names."""
    for name, descriptor in zip(names, descriptors, strict=True):
        path = path_in(folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        out = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode)
        copy_bytes(descriptor, out)
        os.close(out)


def fetch(folder: str, name: str, artifact: int) -> bool:
    """Copy a tool's output file into the artifact; return whether it exists."""
    try:
        descriptor = os.open(path_in(folder, name), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        regular = stat.S_ISREG(os.fstat(descriptor).st_mode)
        if regular:
            copy_bytes(descriptor, artifact)
        return regular
    finally:
        os.close(descriptor)


def reset(folder: str) -> None:
    """Reset the folder's mode and times if it belongs to this user, and thus to programs."""
    if os.stat(folder).st_uid == os.geteuid():
        os.chmod(folder, 0o700)
        os.utime(folder, (0, 0))


def empty(folder: str, within_s: float = SWEEP_S) -> None:
    """Remove all content, however deep or unreadable, while nothing changes it.

    Subfolders are first moved up, so no path has more than two names, and recursion is bounded. Raises OSError,
    perhaps TimeoutError, if something remains.
    """
    until = time.monotonic() + within_s
    reset(folder)
    root = os.open(folder, DIRECTORY)
    try:
        while names := os.listdir(root):
            for name in names:
                _remove(name, root, root, until)
    finally:
        os.close(root)
    reset(folder)


def _remove(name: str, parent: int, root: int, until: float) -> None:
    """Remove a file, or a folder with its files; move its nonempty folders to the root."""
    if time.monotonic() > until:
        raise TimeoutError("too much was left in the folder")
    if not _is_folder(name, parent):
        os.unlink(name, dir_fd=parent)
        return
    try:
        os.rmdir(name, dir_fd=parent)
    except OSError:
        if parent == root:
            _dissolve(name, root, until)
        else:
            os.chmod(name, 0o700, dir_fd=parent)
            os.rename(name, os.urandom(16).hex(), src_dir_fd=parent, dst_dir_fd=root)


def _is_folder(name: str, parent: int) -> bool:
    return stat.S_ISDIR(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode)


def _dissolve(name: str, root: int, until: float) -> None:
    os.chmod(name, 0o700, dir_fd=root)
    inner = os.open(name, DIRECTORY, dir_fd=root)
    try:
        for child in os.listdir(inner):
            _remove(child, inner, root, until)
    finally:
        os.close(inner)
    os.rmdir(name, dir_fd=root)


def used_bytes(folder: str, apart: bool) -> int:
    """Return the bytes of a folder's files; ``apart``: it is a separate file system.

    Else each entry counts at least a block, and unreadable or too many ones count as more than any limit: a program
    could replace a folder by a link to ``/``, so that the host is counted.
    """
    if apart:
        state = os.statvfs(folder)
        return (state.f_blocks - state.f_bfree) * state.f_frsize
    total, count, folders = 0, 0, [folder]
    try:
        while folders:
            entries = _entries(folders.pop(), MAX_FILES + 1 - count)
            count += len(entries)
            if count > MAX_FILES:  # before any is measured, as the program may go on making them
                return UNREADABLE
            for entry in entries:
                with contextlib.suppress(FileNotFoundError):
                    total += max(BLOCK, entry.stat(follow_symlinks=False).st_blocks * 512)
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
    except OSError:
        return UNREADABLE
    return total


def _entries(folder: str, max_entries: int) -> list[os.DirEntry[str]]:
    """Return a folder's first entries, none if the program has removed it.

    Raises OSError if its list of names is too long to read while a program adds to it.
    """
    try:
        if os.stat(folder, follow_symlinks=False).st_size > MAX_LIST_BYTES:
            raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), folder)
        with os.scandir(folder) as opened:
            return list(itertools.islice(opened, max_entries))
    except FileNotFoundError:
        return []


def copy_bytes(source: int, target: int) -> None:
    """Copy a whole file into another."""
    size, position = os.fstat(source).st_size, 0
    while position < size:
        sent = os.sendfile(target, source, position, min(size - position, 1 << 24))
        if sent == 0:
            return
        position += sent
