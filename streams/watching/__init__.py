"""What an operator sees: numbers, logs, lag, liveness."""
