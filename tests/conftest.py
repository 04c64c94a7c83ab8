"""What all tests share: no network, no cache outside the tests' own folders, the same random examples each time."""

from __future__ import annotations

import os
import tempfile

from hypothesis import settings

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("HF_DATASETS_CACHE", tempfile.mkdtemp(prefix="goldilocks-datasets-"))

settings.register_profile("house", deadline=None, max_examples=100, derandomize=True)
settings.load_profile("house")
