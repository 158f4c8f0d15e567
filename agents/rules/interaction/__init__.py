"""Interaction modes: features, classifier, votes, smoothing, drift."""
