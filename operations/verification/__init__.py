"""Log, table, lexical index and vectors compared, and mended."""
