"""The only place where foreign code runs: real processes with real descriptors, in an isolated environment.

`Sandbox` is the face; `Limits` goes in, `RunResult` and `CompileResult` come out: how a program ended and what
it wrote; what that is worth (AC, WA, TLE …) is decided by the caller, in the caller's process: expected outputs never
come here.

    with Sandbox(workers=2) as box:
        print(box.description)
        for ran in box.run_python("print(int(input()) + 1)", [b"1", b"2"], Limits(cpu_s=2)):
            assert ran.ending is Ending.EXITED and ran.exit_code == 0

`doctor.diagnose()` reports property by property what isolation this machine gives, by trying each.

Why the box is made here and not by a kept tool, what holds each property and which test attacks it:
docs/explanation/sandbox.md.
"""

from curation.verify.sandbox.box import Sandbox
from curation.verify.sandbox.outcomes import CompileResult, Ending, Limits, RunResult
from curation.verify.sandbox.rungs import RUNGS

__all__ = ["RUNGS", "CompileResult", "Ending", "Limits", "RunResult", "Sandbox"]
