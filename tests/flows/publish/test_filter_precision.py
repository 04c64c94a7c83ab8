"""What a card states about the format filter's rules: each with its rows and its interval."""

from __future__ import annotations

from flows.publish.card_facts import precision_sentence


def test_the_card_names_every_rule_with_its_rows_unless_it_is_switched_off() -> None:
    text = precision_sentence()
    assert "proof 1.00 (0.99 to 1.00) on 531" in text
    assert "yes_no 1.00" in text
    assert "yes_no" not in precision_sentence(("yes_no",))
