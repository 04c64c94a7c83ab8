"""What leaves before any attempt is made, and why: each filter is a room of its own."""
