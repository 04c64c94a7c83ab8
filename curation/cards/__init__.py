"""The data card of a curated set: README.md in the Hugging Face card format, with its plots.

card.py gathers and renders, words.py says things in words, plots.py draws, templates/ holds the text.
"""

from curation.cards.card import VERSION, CardFacts, FunnelRow, SourceFacts, write_card

__all__ = ["VERSION", "CardFacts", "FunnelRow", "SourceFacts", "write_card"]
