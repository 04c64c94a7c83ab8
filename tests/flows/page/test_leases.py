"""Two people do not get the same item; what is held is let go."""

from __future__ import annotations

from pathlib import Path

from flows.page.leases import FILE, LEASE_S, Leases

WAITING = ["a", "b", "c"]


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_lease_ends_unless_it_is_renewed(tmp_path: Path) -> None:
    clock = Clock()
    leases = Leases(tmp_path, clock)
    leases.take(WAITING, "Ada")
    clock.now = LEASE_S - 1
    assert leases.renew("a", "Ada")
    clock.now = 2 * LEASE_S - 2
    assert leases.take(WAITING, "Bob") == "b"
    clock.now = 3 * LEASE_S
    assert leases.take(WAITING, "Eve") == "a"


def test_a_wanted_item_is_given_where_it_is_free_and_a_damaged_file_is_forgotten(tmp_path: Path) -> None:
    leases = Leases(tmp_path)
    assert leases.take(WAITING, "Ada", "c") == "c"
    assert leases.take(WAITING, "Bob", "c") == "a"
    (tmp_path / FILE).write_text("{")
    assert leases.take(WAITING, "Bob", "c") == "c"
