"""Pins a served deployment's flow and parameters when the service starts.

Safety: the runner executes the flow in memory and reads no code location from the API. A run with other parameters, or
of a changed deployment, ends as cancelled.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import wraps
from pathlib import Path
from typing import Any

from prefect import Flow, get_run_logger
from prefect.client.orchestration import get_client
from prefect.client.schemas.objects import State
from prefect.client.schemas.responses import DeploymentResponse
from prefect.runtime import deployment as current
from prefect.states import Cancelled

from flows.publish.versions import latest

CODE = ("pull_steps", "storage_document_id", "infrastructure_document_id", "job_variables", "work_pool_name", "path")
"""Fields for code or its environment, empty in registered deployments."""


@dataclass(frozen=True, slots=True)
class Pins:
    """A deployment's allowed parameters.

    ``fixed`` have one value, ``inside`` are None or a path in a folder, ``version`` is one of run folder
    ``version_of``.
    """

    fixed: Mapping[str, Path | int | None]
    inside: Mapping[str, Path] = field(default_factory=dict)
    version_of: Path | None = None

    def defaults(self) -> dict[str, str | int]:
        """Return the fixed parameters in the API's form."""
        given = {name: value for name, value in self.fixed.items() if value is not None}
        return {name: str(value) if isinstance(value, Path) else value for name, value in given.items()}

    def refusal(self, parameters: Mapping[str, Any]) -> str | None:
        """Return why these parameters are refused, or None."""
        for name, value in parameters.items():
            if name in self.fixed:
                is_own = value == self.fixed[name]
            elif name in self.inside:
                is_own = value is None or Path(value).resolve().is_relative_to(self.inside[name].resolve())
            else:
                is_own = name == "version" and self.version_of is not None and _has_version(self.version_of, value)
            if not is_own:
                return f"{name} = {value}: this service was not started with it"
        return None


def pinned(flow: Flow[Any, Any], pins: Pins, run_name: Callable[[], str]) -> Flow[Any, Any]:
    """Return a flow that runs with pinned parameters only.

    Args:
        run_name: must not read parameters.
    """
    original = flow.fn
    entrypoint, signature = f"{original.__module__}.{original.__name__}", inspect.signature(original, eval_str=True)

    @wraps(original)
    def run(*arguments: Any, **named: Any) -> State[None] | None:
        bound = signature.bind(*arguments, **named)
        bound.apply_defaults()
        why = pins.refusal(bound.arguments) or _changed_code(entrypoint)
        if why is not None:
            get_run_logger().error("refused: %s", why)
            return Cancelled(message=f"refused: {why}")
        original(*bound.args, **bound.kwargs)
        return None

    run.__signature__ = signature  # type: ignore[attr-defined]
    run.__annotations__ = inspect.get_annotations(original, eval_str=True)  # Prefect looks names up in this module
    return Flow(
        run,
        name=flow.name,
        flow_run_name=run_name,
        retries=flow.retries,
        retry_delay_seconds=flow.retry_delay_seconds,
        persist_result=flow.persist_result,
    )


def foreign_code(deployment: DeploymentResponse) -> list[str]:
    """Return fields that name code or an environment."""
    return [name for name in CODE if getattr(deployment, name, None)]


def _changed_code(entrypoint: str) -> str | None:
    with get_client(sync_client=True) as client:
        held = client.read_deployment(current.id)
    foreign = foreign_code(held) + (["entrypoint"] if held.entrypoint != entrypoint else [])
    return f"{', '.join(foreign)} of the deployment changed since this service registered it" if foreign else None


def _has_version(folder: Path, version: Any) -> bool:
    newest = latest(folder)
    return newest is not None and isinstance(version, int) and 1 <= version <= newest.number
