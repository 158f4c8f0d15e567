"""Answers retrieve requests: vector search, lexical features, ranking, hits. Writes nothing."""
