"""The classifier of interaction modes: examples in, a model file and a report out. `python -m training.interaction`."""
