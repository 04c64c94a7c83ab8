"""`goldilocks verify code`: judge a file of programs, show the progress, print the counts.

The isolation in force is printed first. Without any, programs run only where the user allowed that explicitly.
"""

from __future__ import annotations

from pathlib import Path

from curation.storage.stages import require_other_place
from curation.thinking import OPEN
from curation.verify.programs.files import verify_programs
from curation.verify.programs.tools import Runner
from flows.cli.files import tags_of
from flows.run.progress import bar
from flows.run.terminal import SafeConsole


def verify_code_file(
    problems: Path,
    submissions: Path,
    out: Path,
    workers: int | None = None,
    *,
    thinking: str = OPEN,
    every: bool = False,
    rung: str | None = None,
    allow_none: bool = False,
) -> None:
    """Judge a file of submissions, whose responses think in these tags, into ``out`` and print the counts."""
    require_other_place(out, problems, submissions)
    tags = tags_of(thinking)
    print_line = SafeConsole().print
    reported = 0
    with Runner(workers, rung=rung, allow_none=allow_none) as runner:
        print_line(runner.description)
        with bar("verify code", None) as advance:

            def progress(rows: int) -> None:
                nonlocal reported
                advance(rows - reported)
                reported = rows

            counts = verify_programs(problems, submissions, out, runner, progress, every=every, tags=tags)
    counts_text = ", ".join(f"{name} {count:,}" for name, count in counts.items() if count)
    print_line(f"{sum(counts.values()):,} programs: {counts_text or 'none'}: {out}")
