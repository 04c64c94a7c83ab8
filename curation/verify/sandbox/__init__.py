"""Runs foreign code in isolated processes; nothing else does (docs/explanation/sandbox.md).

    with Sandbox(workers=2) as box:
        for ran in box.run_python("print(int(input()) + 1)", [b"1", b"2"], Limits(cpu_s=2)):
            assert ran.ending is Ending.EXITED and ran.exit_code == 0

Invariant: expected outputs never come here.
"""

from curation.verify.sandbox.box import Sandbox
from curation.verify.sandbox.ladder import RUNGS
from curation.verify.sandbox.outcomes import CompileResult, Ending, Limits, RunResult

__all__ = ["RUNGS", "CompileResult", "Ending", "Limits", "RunResult", "Sandbox"]
