"""The embedder's process: `python -m streams.adapters.embedding.process.child OPTIONS SOCKET LOCK SLOTS`.

Requests come in on the connections of workers, responses leave on them, each as soon as it is done; logs go to standard
error. The first frame has the fingerprint of the loaded model, or why it could not be loaded. The process ends when no
worker is connected, however they die, even while it loads.
"""

import json
import signal
import sys
from typing import Any

from streams.importing import exempt_from_collection

with exempt_from_collection():
    from streams.adapters.embedding.process.shared_server import serve_shared


def main() -> None:
    options: dict[str, Any] = json.loads(sys.argv[1])
    # The worker handles these signals, and ends this process when it no longer needs it.
    for signal_number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(signal_number, signal.SIG_IGN)
    serve_shared(options, *sys.argv[2:])


if __name__ == "__main__":
    main()
