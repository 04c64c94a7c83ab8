"""Other values of the constants by which tests are made, for a measurement or a test."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

from curation.programs import execution_matrix, generation, hunting
from flows.stages import tests

MODULES = (generation, hunting, tests, execution_matrix)


@contextmanager
def made_with(**values: Any) -> Iterator[None]:
    """Give constants these values, wherever they are used: `made_with(ROUNDS=4, GIVE_UP=1)`."""
    with ExitStack() as stack:
        for name, value in values.items():
            users = [module for module in MODULES if hasattr(module, name)]
            assert users, f"no constant is named {name}"
            for module in users:
                stack.enter_context(patch.object(module, name, value))
        yield
