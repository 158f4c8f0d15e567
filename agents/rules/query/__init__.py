"""Query understanding: terms and type of the question, vector spaces to search, search plans."""
