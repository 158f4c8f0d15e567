"""Answers: hits, matching items, drill-down layers and the test whether a layer suffices."""
