"""The process that reads files: `python -m streams.adapters.files.child MEMORY_BYTES`.

Requests come in by a socket on standard input, one at a time, each with its opened file, as this process may open none
itself; frames with what was found leave on standard output. It ends with its worker, however that dies.
"""

import json
import os
import resource
import select
import signal
import socket
import sys
import threading
from dataclasses import astuple
from pathlib import Path
from typing import Any, BinaryIO

from schemas.state.files import ReadFailed, ReadFailure
from streams.adapters.files.confinement import confine, limit_cpu
from streams.adapters.files.frames import FAILED, MAX_REQUEST_BYTES, PICTURE, PROGRESS, TEXT, encode_frame, encode_piece
from streams.adapters.files.reading import read_file
from streams.adapters.files.text_builder import MediaPiece, TextBuilder


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_worker, daemon=True).start()
    # What a library prints must not be taken for a frame.
    output = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    requests = socket.socket(fileno=0)
    confine(int(sys.argv[1]))
    while True:
        line, files, _, _ = socket.recv_fds(requests, MAX_REQUEST_BYTES, 1)
        if not line:
            return
        request = json.loads(line)
        limit_cpu(request["seconds"])
        with os.fdopen(files[0], "rb") as file:
            kind, answer, content = _answer(request, file, output)
        _write(output, encode_frame(kind, {**answer, "peak_bytes": _peak_bytes()}, content))


def _peak_bytes() -> int:
    if sys.platform != "linux":
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    # What `getrusage` says begins with the memory of the worker.
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.partition("VmHWM:")[2].split()[0]) << 10


def _answer(request: dict[str, Any], file: BinaryIO, output: BinaryIO) -> tuple[bytes, dict[str, Any], bytes]:
    try:
        return _drawn(request, file) if "page" in request else _read(request, file, output)
    except ReadFailed as failure:
        return _failed(failure.code, str(failure))
    except MemoryError:
        return _failed("too_large", "Reading the file takes more memory than one may have.")
    except RecursionError:
        return _failed("unreadable", "The file is nested too deeply.")
    except Exception as problem:
        # Its message may have words of the file.
        place = problem.__traceback__
        while place is not None and place.tb_next is not None:
            place = place.tb_next
        where = f"{Path(place.tb_frame.f_code.co_filename).name}:{place.tb_lineno}" if place else "?"
        error = "The file is broken, or of a kind that its reader does not know."
        return _failed("unreadable", error, problem=f"{type(problem).__name__} at {where}")


def _drawn(request: dict[str, Any], file: BinaryIO) -> tuple[bytes, dict[str, Any], bytes]:
    from streams.adapters.files.pdf_reader import draw_page  # noqa: PLC0415 - most files are no PDF

    return PICTURE, {}, draw_page(file, request["page"])


def _read(request: dict[str, Any], file: BinaryIO, output: BinaryIO) -> tuple[bytes, dict[str, Any], bytes]:
    def note_progress() -> None:
        _write(output, encode_frame(PROGRESS, {}))

    def send(piece: MediaPiece) -> None:
        _write(output, encode_piece(piece))

    text = TextBuilder(request["characters"], request["roles"], note_progress, send)
    read = read_file(file, request["media_type"], request["name"], text)
    segments = [astuple(segment) for segment in read.segments]
    return (
        TEXT,
        {"text": read.text, "reader": read.reader, "segments": segments, "pages": read.pages, "seconds": read.seconds},
        b"",
    )


def _failed(code: ReadFailure, error: str, **more: str) -> tuple[bytes, dict[str, Any], bytes]:
    return FAILED, {"code": code, "error": error, **more}, b""


def _write(output: BinaryIO, frame: bytes) -> None:
    view = memoryview(frame)
    while view:
        view = view[output.write(view) :]


def _end_with_worker() -> None:
    waiting = select.poll()
    waiting.register(0, select.POLLHUP)
    while not any(event & (select.POLLHUP | select.POLLERR) for _, event in waiting.poll()):
        pass
    os._exit(0)


if __name__ == "__main__":
    main()
