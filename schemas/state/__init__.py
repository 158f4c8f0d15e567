"""What tables keep: memories, modes, categories, intentions, claims, policies."""
