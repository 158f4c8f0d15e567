"""What one partition owns: one SQLite file with the rows of all tables, the words and the offsets; and its commits."""
