"""`goldilocks publish`: sends a set to a hub, and restores withheld texts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from curation.records import ConfigError, SourceError
from flows.publish.curated_set import published_folder
from flows.publish.hub import plan_push
from flows.publish.hub import push as push_to_hub
from flows.publish.public_set import lacks_texts, restore, sendable
from flows.run.terminal import SafeConsole, echo

SHOWN_ROWS = 5


def publish_set(folder: Path, name: str, *, push: bool, public: bool) -> None:
    """Print what a push would send, and push if asked, without rows that fail their proof."""
    console = SafeConsole()
    curated = published_folder(folder)
    failing = dict[str, str]()
    if push and lacks_texts(curated):
        console.print("its rows are not proved, since their texts are withheld")
    elif push:
        from curation.scoring.checking import failing_rows

        failing = failing_rows(curated)
    if failing:
        console.print(f"{len(failing):,} problems are left out, because they fail their proof:")
        for row, why in failing.items():
            console.print(f"  {row}: {why}")
    planned = plan_push(sendable(folder, failing), name)
    console.print(f"{planned.folder} → {name}, tag {planned.tag}, licence {planned.license}")
    for path, size in planned.files:
        console.print(f"  {size:>13,} B  {path}")
    total = f"{len(planned.files)} files, {planned.bytes / 1e6:,.1f} MB"
    if not push:
        console.print(f"{total}: nothing was sent; --push does it ({'public' if public else 'private'} if it is new)")
        return
    console.print(f"{total}: {push_to_hub(planned, private=not public)}")


def restore_set(folder: Path, home: Path, places: Sequence[str]) -> None:
    """Restore withheld texts, and print how many.

    Args:
        places: sources' paths here, each `NAME=PATH`.

    Raises:
        SourceError: a source's texts have changed.
    """
    given = dict[str, str]()
    for place in places:
        name, _, given[name] = place.partition("=")
        if not (name and given[name]):
            raise ConfigError(f"--source {place}: write NAME=PATH.")
    restored = restore(folder, home, given)
    if restored.missing:
        named = "; ".join(
            f"source {source}: row {', '.join(map(str, rows[:SHOWN_ROWS]))}{' …' if len(rows) > SHOWN_ROWS else ''}"
            for source, rows in restored.missing.items()
        )
        rows = sum(map(len, restored.missing.values()))
        raise SourceError(
            f"{folder}: the texts of {rows:,} rows are not what the set was made from, and stay empty ({named}); all "
            "others are restored. Give the sources in the state that ATTRIBUTION.md names."
        )
    echo(f"{restored.texts:,} texts are restored in {folder}; each has its digest")
