"""An RL trainer on a curated set, and what its checkpoints teach about difficulty."""
