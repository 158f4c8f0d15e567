"""Pure decisions over schemas: no clock, no randomness, no I/O; time and answers come in as arguments."""
