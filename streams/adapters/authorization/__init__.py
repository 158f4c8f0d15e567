"""Who may do what, from files."""
