"""`streams up`: the broker and one worker as children of one process, and what keeps them alive."""
