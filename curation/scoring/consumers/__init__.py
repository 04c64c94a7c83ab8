"""Other trainers' classes that judge by a row's record; a failed verifier is worth 0."""
