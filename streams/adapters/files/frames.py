"""Frames from a process that reads files to its worker: a kind, a header in JSON, and bytes for a model."""

import json
import struct
from collections.abc import Mapping
from typing import Any

from streams.adapters.files.text_builder import MediaPiece

PROGRESS, PIECE, TEXT, PICTURE, FAILED = b"p", b"m", b"t", b"i", b"f"
"""It goes on; a piece for a model; the last frame of a file: its text, a picture of a page, or why there is none."""

MAX_REQUEST_BYTES = 64 << 10
"""Of a request to the process, which is one message."""

PREFIX = struct.Struct("<cII")
"""The kind, and the bytes of header and content."""


def encode_frame(kind: bytes, header: Mapping[str, Any], content: bytes = b"") -> bytes:
    encoded = json.dumps(header, ensure_ascii=False).encode("utf-8", "replace")
    return PREFIX.pack(kind, len(encoded), len(content)) + encoded + content


def encode_piece(piece: MediaPiece) -> bytes:
    header = {"name": piece.name, "role": piece.role, "start_s": piece.start_s, "end_s": piece.end_s}
    return encode_frame(PIECE, header, piece.content)


def decode_piece(header: Mapping[str, Any], content: bytes) -> MediaPiece:
    return MediaPiece(content, header["name"], header["role"], header["start_s"], header["end_s"])
