"""Removes exact and near duplicates."""
