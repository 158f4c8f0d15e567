"""`streams up`: a supervisor of the broker and one worker."""
