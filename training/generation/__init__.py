"""Who generates rollouts while the trainer trains: torch here, vLLM here or on servers; how weights reach them."""
