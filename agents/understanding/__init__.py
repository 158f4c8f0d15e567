"""Reads what a turn is for: classifier, rules, and a language model where one is set."""
