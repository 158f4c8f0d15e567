"""The priority of work that no caller waits for."""

LOW_PRIORITY = 10
"""The niceness of long texts, long layouts and exports beside turns and questions: embedding and answers come first."""
