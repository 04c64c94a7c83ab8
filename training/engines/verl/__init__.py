"""A training recipe compiled into verl's configuration, and verl started, followed and resumed with our own parts."""
