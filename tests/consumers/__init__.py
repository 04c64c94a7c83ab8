"""Exported sets read and judged inside the trainers' own packages (`environments.py` says how these are laid)."""
