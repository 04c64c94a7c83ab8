"""Chooses the strongest rung that runs a program here.

Invariant: nothing weaker than Landlock unless requested.
"""

from __future__ import annotations

import os

from curation.records import VerifierError
from curation.verify.sandbox.outcomes import Limits
from curation.verify.sandbox.slot import (
    Slot,
    SlotError,
    limits_message,
    memory_file,
    output_file,
    read_file,
    run_result,
)

RUNGS = ("namespaces", "user-namespace", "landlock", "none")
"""Rungs, strongest first. ``none`` is never chosen unless requested by name."""

RUNG_DESCRIPTIONS = {
    "namespaces": (
        "own mount, process, network, IPC and host-name namespaces made by root, an unused user id, no capabilities, "
        "a read-only view of the toolchain, a private /tmp of limited size, an allow-list of system calls"
    ),
    "user-namespace": (
        "own user, mount, process, network, IPC and host-name namespaces, no capabilities, a read-only view of the "
        "toolchain, a private /tmp of limited size, an allow-list of system calls"
    ),
    "landlock": (
        "no namespaces: Landlock lets programs read the toolchain and write to a folder of their own, an allow-list of "
        "system calls, no capabilities; names and sizes of the host's files can be seen, their content cannot; "
        "programs that write to /tmp by that name fail"
    ),
    "none": (
        "NO ISOLATION: limits on time, memory and output only; programs can read and harm what this user can; root's "
        "capabilities are given up, and its user id where another one can read the toolchain"
    ),
}

PROBE = b"print(6 * 7)"


def probe_rung(rung: str) -> Slot:
    """Return a slot that has run a program. Raises SlotError if it fails."""
    slot = Slot(rung, "std")
    limits = limits_message(Limits(), tree=False)
    descriptors = [memory_file(PROBE), memory_file(b""), output_file(), output_file()]
    try:
        slot.ask({"op": "python", "args": [], "limits": limits}, descriptors[:1])
        (usage,) = slot.ask({"op": "tests", "files": [[]]}, descriptors[1:])["ran"]
        slot.ask({"op": "end"}, [])
        ran = run_result(usage, Limits(), *descriptors[2:])
        if ran.stdout != b"42\n":
            slot.close()
            raise SlotError(ran.note or read_file(descriptors[3], 4096).decode(errors="replace") or "no output")
    finally:
        for descriptor in descriptors:
            os.close(descriptor)
    return slot


def choose_rung(rung: str | None, allow_none: bool) -> tuple[str, str, Slot]:
    """Return the rung, its description, and a warm slot.

    Raises VerifierError if nothing works.
    """
    if rung is not None and rung not in RUNGS:
        raise VerifierError(f"no isolation is called {rung!r}; use one of {', '.join(RUNGS)}")
    candidates = (rung,) if rung else RUNGS if allow_none else RUNGS[:-1]
    failures: list[str] = []
    for name in candidates:
        try:
            slot = probe_rung(name)
        except SlotError as error:
            failures.append(f"{name}: {error}")
            continue
        facts = slot.facts
        lines = [f"sandbox on rung {name!r} ({RUNG_DESCRIPTIONS[name]})"]
        if not facts["proc"]:
            lines.append("no /proc: memory is measured at the end of a run only")
        if not facts["forks"]:
            lines.append("programs cannot start processes here: no exclusive user id, or no /proc")
        if not facts["owns"]:
            lines.append("modes, times and owners of files cannot be changed here: no exclusive user id")
        lines += [f"not available: {reason}" for reason in failures]
        return name, "; ".join(lines), slot
    advice = "" if allow_none else '; to run foreign code without isolation, name the rung "none"'
    raise VerifierError(f"no isolation works on this machine ({'; '.join(failures)}){advice}")
