"""Categories: assignment by vectors, visibility, summaries, views."""
