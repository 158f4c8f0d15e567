"""The data of one partition: one SQLite file with all tables' rows, the words and the offsets; its commits."""
