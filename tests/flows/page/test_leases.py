"""Two people do not get the same item; what is held is let go."""

from __future__ import annotations

from flows.page.open_runs import LEASE_S, Leases

WAITING = ["a", "b", "c"]


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_lease_ends_unless_it_is_renewed() -> None:
    clock = Clock()
    leases = Leases(clock)
    leases.take(WAITING, "Ada")
    clock.now = LEASE_S - 1
    assert leases.renew("a", "Ada")
    clock.now = 2 * LEASE_S - 2
    assert leases.take(WAITING, "Bob") == "b"
    clock.now = 3 * LEASE_S
    assert leases.take(WAITING, "Eve") == "a"


def test_a_wanted_item_is_given_where_it_is_free() -> None:
    leases = Leases()
    assert leases.take(WAITING, "Ada", "c") == "c"
    assert leases.take(WAITING, "Bob", "c") == "a"
    leases.skip("a", "Bob")
    assert leases.take(WAITING, "Bob") == "b"
    assert leases.take(["a", "c"], "Bob") == "a", "nothing else waits"
