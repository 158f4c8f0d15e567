"""The process's side of the connections of several workers.

Guaranteed: a worker that reads slowly, or not at all, blocks no other; the process ends when none is connected, also
while its model is loaded.
"""

import gc
import os
import select
import socket
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from io import BufferedReader
from pathlib import Path
from typing import Any

from schemas.failures import ModelMissing
from streams.adapters.embedding.process.embedding_server import EmbeddingServer, TurnPool, hello, load_model, refusal
from streams.adapters.embedding.process.frames import WorkSlots


class Connection:
    def __init__(self, number: int, connected: socket.socket) -> None:
        self.number = number
        self.requests: BufferedReader = connected.makefile("rb")
        self._socket = connected
        self._unwritten: deque[bytes] = deque()
        self._writing = threading.Lock()

    def write(self, data: bytes) -> None:
        """Write a frame, or as much as fits now: a separate thread writes the rest."""
        with self._writing:
            if not self._unwritten:
                try:
                    data = data[self._socket.send(data, socket.MSG_DONTWAIT) :]
                except BlockingIOError:
                    pass
                except OSError:
                    return  # The worker has ended: nothing is left to do for it.
            if data:
                self._unwritten.append(data)
                if len(self._unwritten) == 1:
                    threading.Thread(target=self._write_rest, daemon=True).start()

    def close(self) -> None:
        """Close it; unwritten data is dropped."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def _write_rest(self) -> None:
        while True:
            with suppress(OSError):
                self._socket.sendall(self._unwritten[0])
            with self._writing:
                self._unwritten.popleft()
                if not self._unwritten:
                    return


class SharedServer:
    def __init__(self, listening: socket.socket) -> None:
        self._listening = listening
        self._changing = threading.Lock()
        self._connections: dict[int, Connection] = {}
        self._accepted = 0
        self._hello: bytes | None = None
        self._serve: Callable[[Connection], None]

    def accept_one(self) -> None:
        try:
            connected, _ = self._listening.accept()
        except OSError:
            os._exit(1)
        self._accepted += 1
        connection = Connection(self._accepted, connected)
        with self._changing:
            self._connections[connection.number] = connection
            if self._hello is not None:
                connection.write(self._hello)
        threading.Thread(target=self._read, args=(connection,), daemon=True).start()

    def accept_all(self) -> None:
        while True:
            self.accept_one()

    def refuse(self, reason: bytes) -> None:
        """Send all workers the reason why no model is loaded."""
        with self._changing:
            for connection in self._connections.values():
                connection.write(reason)

    def run(self, first_frame: bytes, serve: Callable[[Connection], None]) -> None:
        """Send all workers the first frame, and serve until the process ends."""
        with self._changing:
            self._serve, self._hello = serve, first_frame
            for connection in self._connections.values():
                connection.write(first_frame)
        threading.Event().wait()

    def _read(self, connection: Connection) -> None:
        with suppress(OSError):
            # Before the first frame a worker can only disconnect.
            if connection.requests.peek(1):
                self._serve(connection)
        connection.close()
        with self._changing:
            del self._connections[connection.number]
            # Another worker may wait to be accepted.
            waiting = select.poll()
            waiting.register(self._listening, select.POLLIN)
            if not self._connections and not waiting.poll(0):
                os._exit(0)


def serve_shared(options: dict[str, Any], socket_number: str, lock_number: str, slots: str) -> None:
    """Serve all workers that connect to the inherited socket; the inherited lock is held until the process ends."""
    os.pwrite(int(lock_number), f"{os.getpid()}\n".encode(), 0)
    server = SharedServer(socket.socket(fileno=int(socket_number)))
    # The worker that started this process has connected before: it learns at once of a missing model, too.
    server.accept_one()
    threading.Thread(target=server.accept_all, daemon=True).start()
    try:
        model = load_model(options)
    except ModelMissing as problem:
        server.refuse(refusal(problem))
        os._exit(1)
    gc.freeze()  # Loaded data stays: garbage collection never looks at it again.
    pool = TurnPool(options["threads"], WorkSlots(Path(slots)))

    def serve(connection: Connection) -> None:
        EmbeddingServer(model, connection.write, pool, str(connection.number)).serve(connection.requests)

    server.run(hello(model), serve)
