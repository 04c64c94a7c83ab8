"""A run: its recipe, its folder, who computes its shards, and how far it is."""
