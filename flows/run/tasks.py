"""Run items as Prefect tasks, if within a flow run."""

from __future__ import annotations

import sys
from collections.abc import Callable

from flows.run.stage import Stage, StageResult, Step

Item = Stage | Step
Work = Callable[[], StageResult | None]


def in_flow_run() -> bool:
    """Return whether a Prefect flow runs."""
    if "prefect" not in sys.modules:
        return False
    from prefect.context import FlowRunContext

    return FlowRunContext.get() is not None


def as_task(item: Item, work: Work) -> Work:
    """Return an item's work, a task in a flow run."""
    if not in_flow_run():
        return work
    from prefect import task
    from prefect.cache_policies import NO_CACHE

    named = task(name=item.task_name, task_run_name=item.task_run_name, cache_policy=NO_CACHE, persist_result=False)
    return named(work)
