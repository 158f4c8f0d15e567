"""The question: its terms, its type, the plan of the search."""
