"""Trains the weights of the ranking on the conversations of this folder: `python -m training.ranking`."""
