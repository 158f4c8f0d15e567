"""Train the classifier of interaction modes and write its report: `python -m training.interaction`."""
