"""Plans consolidation: clusters to summarise, items to deduplicate and decay. Writes nothing itself."""
