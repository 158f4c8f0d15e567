"""The answer: hits, matching items, whether they suffice."""
