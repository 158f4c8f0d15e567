"""Intentions: goals, constraints, decisions and errors. The only writer of the table `intentions`."""
