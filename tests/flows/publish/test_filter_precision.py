"""What a card says of the format filter's rules: each with its rows, its interval, and whose rows they were."""

from __future__ import annotations

from curation.filters.statements.scoring import FEATURE_RULES
from flows.publish.filter_precision import precision_sentences


def test_the_card_names_every_rule_with_its_rows_and_what_they_were() -> None:
    read, behind, own, score, features, by_score, recall = precision_sentences()
    assert "choices 0.96 (0.91 to 0.98) on 162" in read
    assert "(choices on rows read with the verdict hidden" in read
    assert "proof 1.00 (0.99 to 1.00) on 531" in read
    assert "letter_answer 0.99" in behind
    assert "program_text 1.00 (0.74 to 1.00) on 11 (no real row read)" in own
    assert "was 0.9 or more" in score
    assert all(rule in features for rule in FEATURE_RULES if rule != "choices")
    assert "not trained on" in by_score
    assert "textual_answer 0.87 on 66" in recall


def test_a_rule_that_is_switched_off_is_not_on_the_card() -> None:
    told = " ".join(precision_sentences(("choices", "program_text")))
    assert "choices 0" not in told
    assert "verdict hidden" not in told
    assert "program_text" not in told
