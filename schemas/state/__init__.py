"""Values of tables: memories, modes, categories, intentions, claims, policies."""
