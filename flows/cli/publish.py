"""`goldilocks publish`: what would be pushed to a data set hub, and the push."""

from __future__ import annotations

from pathlib import Path

from flows.publish.hub import plan_push
from flows.publish.hub import push as push_to_hub
from flows.publish.public_set import sendable
from flows.run.terminal import SafeConsole


def publish_set(folder: Path, name: str, *, push: bool, public: bool) -> None:
    """Print what a push would send; push it where that is asked for."""
    planned = plan_push(sendable(folder), name)
    console = SafeConsole()
    console.print(f"{planned.folder} → {name}, tag {planned.tag}, licence {planned.license}")
    for path, size in planned.files:
        console.print(f"  {size:>13,} B  {path}")
    total = f"{len(planned.files)} files, {planned.bytes / 1e6:,.1f} MB"
    if not push:
        console.print(
            f"{total}: nothing was sent; --push does it ({'public' if public else 'private'} where it is new)"
        )
        return
    console.print(f"{total}: {push_to_hub(planned, private=not public)}")
