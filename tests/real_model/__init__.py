"""A real chat model, SmolLM2-135M-Instruct, through the whole loop: what the embedded model cannot show."""
