"""From problems to samples: what is rolled out next, how it is verified, what is trained on."""
