"""A run: its recipe, folder, stages, runner and progress."""
