"""Sizes of the project: source, tests, modules, settings, commands, drop reasons, dependencies, words of the docs."""
