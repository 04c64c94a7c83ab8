"""Curated sets, their cards, versions, reviews and exports."""
