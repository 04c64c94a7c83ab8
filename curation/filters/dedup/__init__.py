"""The same problem twice: exact copies, near duplicates, and the hashes that find them."""
