import io
import wave
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import soundfile

from schemas.models.language import Heard, Profile, Profiles
from schemas.state.files import FileText, ReadFailed
from streams.adapters.files import sound_reader
from streams.adapters.files.media_models import MediaModels
from streams.adapters.files.process_reader import ProcessFileReader, ReadLimits
from streams.adapters.files.text_builder import MediaPiece, TextBuilder
from tests.builders.files import image, sound
from tests.fakes.language_model import FakeLanguageModel

MEDIA = Profiles(
    {
        name: Profile(model="fake/model", roles=roles)
        for name, roles in {"default": (), "media": ("caption", "transcribe")}.items()
    }
)


@pytest.fixture
def model() -> FakeLanguageModel:
    return FakeLanguageModel(profiles=MEDIA)


@pytest.fixture
async def reader(model: FakeLanguageModel) -> AsyncIterator[ProcessFileReader]:
    opened = ProcessFileReader(ReadLimits(), model)
    yield opened
    await opened.close()


async def read(reader: ProcessFileReader, content: bytes, media_type: str, folder: Path) -> FileText | str:
    path = folder / "bytes"
    path.write_bytes(content)
    try:
        return await reader.read(path, media_type=media_type, name="a")
    except ReadFailed as failure:
        return failure.code


async def test_sound_is_what_the_model_hears(reader: ProcessFileReader, tmp_path: Path) -> None:
    heard = await read(reader, sound(3), "audio/wav", tmp_path)
    assert isinstance(heard, FileText)
    assert heard.text == "Under the pot."
    assert [(segment.start_s, segment.end_s) for segment in heard.segments] == [(0.0, 3.0)]
    assert heard.seconds == 3.0


@pytest.mark.parametrize(("behaviour", "code"), [("down", "unavailable"), ("wrong", "unreadable")])
async def test_sound_without_an_answer_fails(
    reader: ProcessFileReader, model: FakeLanguageModel, tmp_path: Path, behaviour: str, code: str
) -> None:
    model.become(behaviour)  # type: ignore[arg-type]
    assert await read(reader, sound(), "audio/wav", tmp_path) == code


async def test_film_goes_to_the_model_as_it_is(
    reader: ProcessFileReader, model: FakeLanguageModel, tmp_path: Path
) -> None:
    film = b"\0\0\0\x18ftypmp42" + bytes(1000)
    await read(reader, film, "video/mp4", tmp_path)
    assert model.sounds == [film]


async def test_image_has_its_caption_before_what_is_printed(
    reader: ProcessFileReader, model: FakeLanguageModel, tmp_path: Path
) -> None:
    model.say("A sign of a boat house.")
    seen = await read(reader, image("PNG", "POT 4711"), "image/png", tmp_path)
    assert isinstance(seen, FileText)
    assert seen.text == "A sign of a boat house.\n\nPOT 4711"
    assert [seen.text[part.start : part.end] for part in seen.segments] == ["A sign of a boat house.", "POT 4711"]
    assert seen.reader == "ocr+caption"


async def test_image_that_a_model_refuses_has_what_is_printed(
    reader: ProcessFileReader, model: FakeLanguageModel, tmp_path: Path
) -> None:
    model.become("wrong")
    seen = await read(reader, image("PNG", "POT 4711"), "image/png", tmp_path)
    assert isinstance(seen, FileText)
    assert seen.text == "POT 4711"


async def test_default_profile_neither_sees_nor_hears(tmp_path: Path) -> None:
    reader = ProcessFileReader(ReadLimits(), FakeLanguageModel())
    assert await read(reader, sound(), "audio/wav", tmp_path) == "no_model"
    await reader.close()


def pieces_of(content: bytes) -> list[MediaPiece]:
    pieces: list[MediaPiece] = []
    text = TextBuilder(1000, ["transcribe"], lambda: None, pieces.append)
    sound_reader.read_sound(io.BytesIO(content), "a.wav", text)
    return pieces


def test_long_sound_is_cut_where_it_is_quiet() -> None:
    pieces = pieces_of(sound(700))
    assert [round(piece.start_s) % 10 in {0, 9} for piece in pieces] == [True] * 3
    assert pieces[0].end_s == pieces[1].start_s
    assert pieces[-1].end_s == 700.0


def test_pieces_are_the_whole_sound() -> None:
    frames = [soundfile.info(io.BytesIO(piece.content)).frames for piece in pieces_of(sound(700))]
    assert sum(frames) == 700 * 8000


async def test_sound_called_a_picture_is_heard(
    reader: ProcessFileReader, model: FakeLanguageModel, tmp_path: Path
) -> None:
    path = tmp_path / "bytes"
    path.write_bytes(sound(3))
    await reader.read(path, media_type="audio/wav", name="a.jpg")
    assert model.sounds == [sound(3)]


def test_sound_of_years_in_few_samples_is_too_large() -> None:
    content = io.BytesIO()
    soundfile.write(content, [0.0] * 2_000_000, 1, format="WAV", subtype="PCM_U8")
    with pytest.raises(ReadFailed, match="24 hours"):
        pieces_of(content.getvalue())


def test_sound_of_a_false_length_has_what_there_is() -> None:
    content = bytearray(sound(2))
    content[40:44] = b"\xff\xff\xff\x7f"
    [piece] = pieces_of(bytes(content))
    with wave.open(io.BytesIO(piece.content)) as heard:
        assert heard.getframerate() == 8000


async def test_pauses_begin_segments() -> None:
    class Speaker(FakeLanguageModel):
        async def transcribe(self, step: str, role: str, sound: bytes, name: str) -> list[Heard]:
            return [Heard("One.", 0, 2), Heard(" Two. ", 2.1, 4), Heard("Three.", 9, 10)]

    models = MediaModels(Speaker(profiles=MEDIA))
    await models.read(MediaPiece(b"", "a.flac", "transcribe", 300.0, 310.0))
    read = models.complete(FileText("", "transcribe", seconds=400.0))
    assert read.text == "One. Two.\n\nThree."
    assert [(part.start_s, part.end_s) for part in read.segments] == [(300.0, 304.0), (309.0, 310.0)]
