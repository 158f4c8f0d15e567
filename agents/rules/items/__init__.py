"""Items of a text: extraction of facts, decisions and procedures; claims and their resolution; merging."""
