"""The ladder of isolation, strongest first, with a description per rung."""

from __future__ import annotations

RUNGS = ("namespaces", "user-namespace", "landlock", "none")
"""Names of the rungs, strongest first. ``none`` is never chosen unless it is asked for by name."""

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
