"""Pure functions over schemas: no clock, no randomness, no I/O; time and model answers are arguments."""
