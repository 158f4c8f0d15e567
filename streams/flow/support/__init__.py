"""What steps share: backoff, progress, publisher, logs of turns and jobs."""
