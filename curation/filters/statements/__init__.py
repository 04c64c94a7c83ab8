"""Keeps complete open problems with one final answer, cleaned."""
