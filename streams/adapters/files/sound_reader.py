"""Cuts sound into pieces that a transcribing model accepts; the worker joins the transcripts."""

import io
from typing import Any, BinaryIO

import numpy as np
import soundfile

from schemas.state.files import ReadFailed
from streams.adapters.files.text_builder import TRANSCRIBE, MediaPiece, TextBuilder

MAX_SENT_BYTES = 24 << 20
"""Providers accept at most 25 MB per request."""

MAX_SENT_S = 600.0
"""A longer one is sent in pieces: a model forgets, repeats itself, or ends early over an hour."""

PIECE_S = 300.0
SEARCHED_S = 20.0
"""A piece ends in its quietest moment of this time before its end."""

MAX_SOUND_S = 24 * 3600
"""A sound of few samples a second has years in a megabyte, and each piece is a model's call."""

MOMENT_S = 0.2
SAMPLE_BYTES = 2


def read_sound(file: BinaryIO, name: str, text: TextBuilder) -> None:
    """Send a sound or a film to the model, in pieces where it is long."""
    if TRANSCRIBE not in text.roles:
        raise ReadFailed("no_model", "Sound is read by a model, and no profile of the role `transcribe` is set.")
    size = file.seek(0, io.SEEK_END)
    file.seek(0)
    try:
        sound = soundfile.SoundFile(file)
    except (soundfile.SoundFileError, OSError, ValueError, TypeError):
        # A film, or a format that only the model's server can open.
        if size > MAX_SENT_BYTES:
            limit = MAX_SENT_BYTES >> 20
            raise ReadFailed(
                "too_large", f"Films and sound of this format may have {limit} MB; save the sound as MP3 or FLAC."
            ) from None
        file.seek(0)
        text.send(MediaPiece(file.read(), name, TRANSCRIBE))
        return
    with sound:
        seconds = text.seconds = sound.frames / sound.samplerate
        if size <= MAX_SENT_BYTES and seconds <= MAX_SENT_S:
            file.seek(0)
            text.send(MediaPiece(file.read(), name, TRANSCRIBE, 0.0, seconds))
        else:
            _send_pieces(sound, text)


def _send_pieces(sound: Any, text: TextBuilder) -> None:
    rate = sound.samplerate
    length = int(min(PIECE_S * rate, MAX_SENT_BYTES / SAMPLE_BYTES))
    kept = np.zeros(0, np.float32)
    start = 0
    try:
        while len(block := sound.read(length - len(kept), dtype="float32", always_2d=True).mean(axis=1)) or len(kept):
            heard = np.concatenate((kept, block))
            cut = len(heard) if len(heard) < length else _quiet_moment(heard, rate)
            piece = io.BytesIO()
            soundfile.write(piece, heard[:cut], rate, format="FLAC", subtype="PCM_16")
            part = MediaPiece(piece.getvalue(), "piece.flac", TRANSCRIBE, start / rate, (start + cut) / rate)
            text.send(part)
            start, kept = start + cut, heard[cut:]
            if start > MAX_SOUND_S * rate:
                raise ReadFailed("too_large", f"The sound is longer than {MAX_SOUND_S // 3600} hours.")
    except soundfile.SoundFileError as problem:
        raise ReadFailed("unreadable", "The sound is broken.") from problem


def _quiet_moment(heard: Any, rate: int) -> int:
    """Return where the quietest moment near the end is."""
    moment = max(1, int(MOMENT_S * rate))
    first = max(moment, len(heard) - int(SEARCHED_S * rate))
    loudness = [float(np.square(heard[at : at + moment]).sum()) for at in range(first, len(heard) - moment, moment)]
    return first + moment * int(np.argmin(loudness)) + moment // 2 if loudness else len(heard)
