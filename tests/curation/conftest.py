"""One runner with two slots for all that runs programs."""

from collections.abc import Iterator

import pytest

from curation.verify.programs.tools import Runner


@pytest.fixture(scope="session")
def runner() -> Iterator[Runner]:
    with Runner(2) as runner:
        yield runner
