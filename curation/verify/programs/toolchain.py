"""Compiles C++, with files prebuilt once per machine.

Invariant: programs compile without prebuilt files too, more slowly.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from curation.verify.sandbox import Limits, Sandbox
from curation.verify.sandbox.library import cache_folder

COMPILE_LIMITS = Limits(cpu_s=10.0, wall_s=60.0, memory_mb=2048)
"""The recipe's 10 s of CPU time; memory and wall time are not in the paper."""
STANDARDS = ("gnu++20", "gnu++17", "gnu++14", "gnu++11", "gnu++98")
"""Standards to try in turn, for names that later ones define and features that they lack. Not in the paper."""
CPP_FLAGS = (f"-std={STANDARDS[0]}", "-O2")
"""C++20 with GNU's extensions, as in contests; the precompiled header needs exactly these flags."""
PRECOMPILE_LIMITS = Limits(cpu_s=120.0, memory_mb=4096, output_bytes=16 << 20, file_mb=512, processes=32)
OUTPUT = "a.out"
_INCLUDE = "include"
"""Include folder for the header alone, as all its files become ``<name>``."""
_OBJECT = "threads.o"
_THREADS = b"""#define _GNU_SOURCE
#include <pthread.h>
static void set(void) {
    pthread_attr_t attributes;
    if (pthread_attr_init(&attributes) == 0 && pthread_attr_setstacksize(&attributes, 8 << 20) == 0)
        pthread_setattr_default_np(&attributes);
}
__attribute__((used, section(".preinit_array"))) static void (*const first)(void) = set;
"""
"""Gives threads stacks of 8 MiB; the C library would take the main stack's limit, in the box nearly all memory."""


def tools_folder() -> Path:
    """Return the user's cache folder for prebuilt files."""
    folder = cache_folder() / f"cpp-{hashlib.sha256(repr((CPP_FLAGS, _THREADS)).encode()).hexdigest()[:12]}"
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o755)
    return folder


def prebuilt_arguments(box: Sandbox) -> tuple[str, ...]:
    """Return compiler arguments for prebuilt files, built if missing."""
    folder, tools_in_box = box.tools, box.seen_tools
    if folder is None or tools_in_box is None:
        return ()
    probe = box.compile({}, ("g++", "--version"), COMPILE_LIMITS, output="none")
    version = hashlib.sha256(probe.log.encode()).hexdigest()
    mark, header, threads = folder / "version", folder / _INCLUDE / "bits" / "stdc++.h.gch", folder / _OBJECT
    kept = [path.is_file() for path in (header, threads)]
    if not all(kept) or not mark.is_file() or mark.read_text() != version:
        mark.unlink(missing_ok=True)
        for directory in (folder / _INCLUDE, header.parent):
            directory.mkdir(mode=0o755, exist_ok=True)
        source = {"all.h": b"#include <bits/stdc++.h>\n"}
        kept = [
            _keep(box, header, source, ("g++", *CPP_FLAGS, "-x", "c++-header", "all.h", "-o", OUTPUT)),
            _keep(box, threads, {"threads.c": _THREADS}, ("g++", "-x", "c", "-O2", "-c", "threads.c", "-o", OUTPUT)),
        ]
        if all(kept):
            mark.write_text(version)
    arguments = ("-I", str(tools_in_box / _INCLUDE)), (str(tools_in_box / _OBJECT),)
    return tuple(word for is_kept, options in zip(kept, arguments, strict=True) if is_kept for word in options)


def missing_object(box: Sandbox, arguments: tuple[str, ...]) -> str:
    """Return an error if the linked object has disappeared."""
    if (
        box.tools is None
        or not any(argument.endswith(_OBJECT) for argument in arguments)
        or (box.tools / _OBJECT).is_file()
    ):
        return ""
    return f"{box.tools / _OBJECT}, which C++ programs are linked with, is missing; run the command again"


def _keep(box: Sandbox, target: Path, sources: dict[str, bytes], command: tuple[str, ...]) -> bool:
    """Compile into ``target`` atomically; return whether it worked."""
    build = box.compile(sources, command, PRECOMPILE_LIMITS)
    if build.artifact is None:
        return False
    temporary = target.with_name(f"{target.name}.{os.getpid()}")
    temporary.write_bytes(build.artifact)
    temporary.chmod(0o644)
    temporary.replace(target)
    return True
