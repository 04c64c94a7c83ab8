"""The same problem twice: exact copies, near duplicates, and the hashes and embeddings that find them."""
