"""Interaction modes: features, classifier, voting, smoothing, drift detection."""
