"""Keeps the intentions: goals, constraints, decisions and errors. One writer for the table `intentions`."""
