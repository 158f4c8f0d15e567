"""Child processes of a worker: their priority, and their end when the worker ends, however it died."""

import os
import select
import threading


def end_with_parent() -> None:
    """Start a thread that ends this process when its standard input is closed at the other end."""

    def exit_on_hangup() -> None:
        stdin = select.poll()
        stdin.register(0, 0)  # No events asked for: poll reports a hang-up only.
        stdin.poll()
        os._exit(0)

    threading.Thread(target=exit_on_hangup, daemon=True).start()


LOW_PRIORITY = 10
"""The niceness of long texts, long layouts and exports: embedding and answers come first."""
