"""`goldilocks verify code`: judge a file of programs, show how far it is, print the counts.

Which isolation is in force is printed first; without any, it runs only where the user said so in as many words.
"""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from curation.verify.programs.files import verify_programs
from curation.verify.programs.tools import Runner
from flows.run.progress import bar


def verify_code_file(
    problems: Path,
    submissions: Path,
    out: Path,
    workers: int | None = None,
    *,
    every: bool = False,
    rung: str | None = None,
    allow_none: bool = False,
) -> None:
    """Judge a file of submissions into ``out`` and print the counts."""
    say = Console(markup=False, highlight=False, soft_wrap=True).print
    done = 0
    with Runner(workers, rung=rung, allow_none=allow_none) as runner:
        say(runner.description)
        with bar("verify code", None) as advance:

            def progress(rows: int) -> None:
                nonlocal done
                advance(rows - done)
                done = rows

            counts = verify_programs(problems, submissions, out, runner, progress, every=every)
    shown = ", ".join(f"{name} {count:,}" for name, count in counts.items() if count)
    say(f"{sum(counts.values()):,} programs: {shown or 'none'}: {out}")
