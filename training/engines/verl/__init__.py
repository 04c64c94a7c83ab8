"""Train with verl: compile recipes, start, follow and resume it."""
