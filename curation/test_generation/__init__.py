"""Tests made where they lack: inputs by changing existing ones (`mutation`, within what `shapes` sees and `limits`
reads), generator programs of a model (`generators`), and which of the made tests are worth keeping (`selecting`).

Nothing here says that an input is valid: whoever calls runs the solutions on it, and they must agree.
"""

from curation.test_generation.generators import Programs, programs_in
from curation.test_generation.limits import Bound, stated_bounds
from curation.test_generation.mutation import mutations
from curation.test_generation.selecting import chosen

VERSION = "test_generation@1"

__all__ = ["VERSION", "Bound", "Programs", "chosen", "mutations", "programs_in", "stated_bounds"]
