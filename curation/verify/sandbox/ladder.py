"""Chooses the strongest rung that runs a program here.

Invariant: nothing weaker than Landlock unless requested.
"""

from __future__ import annotations

import os
from pathlib import Path

from curation.records import VerifierError
from curation.verify.sandbox.library import LibraryUnavailable, build_library
from curation.verify.sandbox.outcomes import Limits
from curation.verify.sandbox.results import run_result
from curation.verify.sandbox.rungs import RUNG_DESCRIPTIONS, RUNGS
from curation.verify.sandbox.slot import Slot, SlotError, limits_message, memory_file, output_file, read_file

PROBE = b"print(6 * 7)"


def probe_rung(rung: str, library: Path | None) -> Slot:
    """Return a slot that has run a program. Raises SlotError if it fails."""
    slot = Slot(rung, "std", library=library)
    limits = limits_message(Limits(), tree=False)
    descriptors = [memory_file(PROBE), memory_file(b""), output_file(), output_file()]
    try:
        slot.ask({"op": "python", "limits": limits}, descriptors[:1])
        (used,) = slot.ask({"op": "tests", "args": [], "files": [[]]}, descriptors[1:])["ran"]
        slot.ask({"op": "end"}, [])
        ran = run_result(used, Limits(), *descriptors[2:])
        if ran.stdout != b"42\n":
            slot.close()
            raise SlotError(ran.note or read_file(descriptors[3], 4096).decode(errors="replace") or "no output")
    finally:
        for descriptor in descriptors:
            os.close(descriptor)
    return slot


def choose_rung(rung: str | None, allow_none: bool) -> tuple[str, str, Slot, Path | None]:
    """Return the rung, its description, a warm slot, and the library.

    Raises VerifierError if nothing works.
    """
    if rung is not None and rung not in RUNGS:
        raise VerifierError(f"no isolation is called {rung!r}; use one of {', '.join(RUNGS)}")
    candidates = (rung,) if rung else RUNGS if allow_none else RUNGS[:-1]
    failures: list[str] = []
    starter, slowly = None, []
    try:
        starter = build_library()
    except LibraryUnavailable as why:
        slowly = [f"programs are started by Python, more slowly: {why}"]
    for name in candidates:
        try:
            slot = probe_rung(name, starter)
        except SlotError as error:
            failures.append(f"{name}: {error}")
            continue
        facts = slot.facts
        lines = [f"sandbox on rung {name!r} ({RUNG_DESCRIPTIONS[name]})"]
        if not facts["proc"]:
            lines.append("no /proc: memory is measured at the end of a run only")
        if not facts["forks"]:
            lines.append("programs cannot start processes of their own here: no user id of its own, or no /proc")
        if not facts["owns"]:
            lines.append("modes, times and owners of files stay as they are here: no user id of its own")
        lines += [f"not available: {reason}" for reason in failures]
        return name, "; ".join(lines + slowly), slot, starter
    advice = "" if allow_none else '; to run foreign code without isolation, say so: rung "none"'
    raise VerifierError(f"no isolation works on this machine ({'; '.join(failures)}){advice}")
