"""Authorization policies from files."""
