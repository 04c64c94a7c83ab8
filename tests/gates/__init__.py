"""The figures that must hold, one gate each: `make gates`, `python -m tests.gates`.

A gate measures one figure and compares it with its limit. Its status is one of

    holds     the figure is within its limit
    fails     it is not
    expected  it fails, as its mark `until` states; a gate with a mark that holds fails, so that the mark goes
    stale     the stored answers do not cover today's prompts (`tests/gates/answers`)
    skipped   it could not be measured, and the reason is printed; a skip is not a pass

Gates are grouped by room, a module of this package each; a room runs in a process of its own. Gates that only count
tests of the suite are rows of `tests.toml`.
"""
