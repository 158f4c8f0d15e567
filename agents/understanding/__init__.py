"""Classifies turns: by classifier and rules, and by a language model if one is configured."""
