"""Train the ranking weights on the conversations of this folder: `python -m training.ranking`."""
