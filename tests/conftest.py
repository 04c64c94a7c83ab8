"""What all tests share: no network, no cache outside the tests' own folders, the same random examples each time."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile

from hypothesis import settings

# The data-set library reads its environment once, when it is imported: hence here, and not in a fixture.
CACHE = tempfile.mkdtemp(prefix="goldilocks-tests-")
atexit.register(shutil.rmtree, CACHE, ignore_errors=True)
os.environ["HF_DATASETS_CACHE"] = CACHE
os.environ["HF_HUB_OFFLINE"] = "1"

settings.register_profile("house", deadline=None, max_examples=100, derandomize=True)
settings.load_profile("house")
