"""How many problems may be refused."""

import pytest

from curation.policies.failure_budget import IN_A_ROW, FailureBudget
from curation.records import PolicyError, RequestRefused

REFUSED = RequestRefused("400", "http://s: 400 poisoned.")


@pytest.mark.parametrize(("share", "problems", "allowed"), [(0.01, 5, 1), (0.01, 1000, 10), (0.29, 100, 29), (0, 9, 0)])
def test_the_share_allows_so_many_and_one_at_least(share: float, problems: int, allowed: int) -> None:
    budget = FailureBudget(share, problems, "stage1.sampling.max_failed")
    for number in range(allowed):
        budget.count_refusal(f"p{number}", REFUSED)
        budget.count_refusal(f"p{number}", REFUSED)  # the same problem
        budget.count_answer()
    with pytest.raises(PolicyError) as ended:
        budget.count_refusal("last", RequestRefused("too_long", "too long."))
    assert f"{allowed + 1} of {problems:,} problems were refused (" in str(ended.value)
    assert f"more than stage1.sampling.max_failed = {share:g} allows ({allowed})" in str(ended.value)
    assert "the last, problem last: too long. Fix the cause" in str(ended.value)


def test_refusals_in_a_row_end_a_run_whatever_the_share() -> None:
    budget = FailureBudget(1.0, 10_000, "max_failed")
    for number in range(IN_A_ROW - 1):
        budget.count_refusal(str(number), REFUSED)
    budget.count_answer()
    for number in range(IN_A_ROW, 2 * IN_A_ROW - 1):
        budget.count_refusal(str(number), REFUSED)
    with pytest.raises(PolicyError, match="20 of them one after the other with no answer between them"):
        budget.count_refusal("last", REFUSED)
    with pytest.raises(PolicyError, match="6 of 10"):
        FailureBudget(0.5, 10, "max_failed", before=5).count_refusal("p", REFUSED)  # what was refused before counts
