"""Sentences labelled by hand, and how well the patterns of the sentence labels find them."""
