"""Models that see images and hear sound, for one file: pieces go to them as a reader's process finds them."""

import base64
from dataclasses import replace

from agents.ports.models import LanguageModel
from schemas.failures import Unavailable
from schemas.models.language import Chat, Heard, Unanswerable
from schemas.state.files import FileText, ReadFailed, Segment
from streams.adapters.files.text_builder import CAPTION, TRANSCRIBE, Block, MediaPiece, cut_segments

CAPTION_PROMPT = (
    "Describe the image in at most three sentences, for a search by words. Say what it shows, no more. Use the language"
    " of the text on it, else English."
)

PAUSE_S = 1.5
"""A pause of speech that begins a new segment."""


class MediaModels:
    """The models' results for the pieces of one file."""

    def __init__(self, language: LanguageModel | None) -> None:
        self._language = language
        self._caption = ""
        self._caption_profile = ""
        self._heard: list[Heard] = []
        self.roles = {role for role in (CAPTION, TRANSCRIBE) if language is not None and language.has_role(role)}
        """The roles that have a profile."""

    async def read(self, piece: MediaPiece) -> None:
        """Have a model read a piece. Raises `ReadFailed`, `unavailable` where it may be read later."""
        assert self._language is not None
        try:
            if piece.role == CAPTION:
                image = {
                    "type": "image_url",
                    "image_url": {"url": f"data:image/jpeg;base64,{base64.b64encode(piece.content).decode()}"},
                }
                content = [{"type": "text", "text": CAPTION_PROMPT}, image]
                answer = await self._language.continue_chat(
                    CAPTION, CAPTION, Chat([{"role": "user", "content": content}])
                )
                self._caption, self._caption_profile = answer.text.strip(), answer.profile
            else:
                heard = await self._language.transcribe(TRANSCRIBE, TRANSCRIBE, piece.content, piece.name)
                self._heard.extend(_moved(part, piece) for part in heard)
        except Unavailable as problem:
            raise ReadFailed("unavailable", f"The model that is to read the file is away: {problem}.") from problem
        except Unanswerable as problem:
            if piece.role != CAPTION:
                raise ReadFailed("unreadable", f"The model can't read the file: {problem}.") from problem

    def complete(self, read: FileText) -> FileText:
        """Return a file's text, including the models' texts of its images and sound."""
        if self._heard:
            return self._transcript(read)
        if not self._caption:
            return read
        # The caption stands before what is printed.
        start = len(self._caption) + 2
        moved = (replace(segment, start=segment.start + start, end=segment.end + start) for segment in read.segments)
        segments = (Segment(0, len(self._caption)), *moved)
        text = f"{self._caption}\n\n{read.text}" if read.text else self._caption
        return replace(read, text=text, segments=segments, reader=f"{read.reader}+caption")

    def _transcript(self, read: FileText) -> FileText:
        parts: list[str] = []
        blocks: list[Block] = []
        length, before = 0, 0.0
        for heard in self._heard:
            if not (said := " ".join(heard.text.split())):
                continue
            gap = "" if not parts else "\n\n" if heard.start_s - before > PAUSE_S else " "
            start = length + len(gap)
            length = start + len(said)
            blocks.append(Block(start, length, None, heard.start_s, heard.end_s, begins_section=gap == "\n\n"))
            parts += (gap, said)
            before = heard.end_s if heard.end_s is not None else heard.start_s
        text = "".join(parts)
        seconds = read.seconds or max((part.end_s or 0.0 for part in self._heard), default=0.0) or None
        return replace(read, text=text, segments=cut_segments(text, blocks), seconds=seconds)


def _moved(heard: Heard, piece: MediaPiece) -> Heard:
    """Return a part with its time in the whole sound."""
    end_s = piece.end_s if heard.end_s is None else piece.start_s + heard.end_s
    return replace(heard, start_s=piece.start_s + heard.start_s, end_s=end_s)
