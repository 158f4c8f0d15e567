"""Reader of images: printed text, by OCR on this machine."""

import io
from functools import cache
from typing import Any, BinaryIO

import numpy as np
from PIL import Image, ImageOps, ImageSequence, UnidentifiedImageError

from schemas.state.files import ReadFailed
from streams.adapters.files.text_builder import CAPTION, MediaPiece, TextBuilder

MAX_PIXELS = 100_000_000
MAX_READ_SIDE = 2400
"""Larger images are reduced: print of a usual size stays legible, and memory bounded."""

MAX_SEARCHED_SIDE = 1280
"""Lines are looked for in an image of this size, and read in the larger one. The package's default enlarges small
images instead: a wide one took 900 MB."""

MIN_PRINTED_CHARS = 3
"""Fewer are a letter that a roof or a leaf looks like."""

MIN_SIDE, MIN_PIXELS = 40, 20_000
"""A smaller picture in a document is an icon or a line."""

MAX_SHOWN_SIDE = 1024
"""Of an image for a model."""

MAX_FRAMES = 500
PAGED_FORMATS = frozenset({"TIFF"})
"""Formats whose frames are pages; those of others are an animation, of which the first is read."""


def read_image(file: BinaryIO, text: TextBuilder) -> int | None:
    """Read an image, or the pages of one; return how many. An image of one page goes to a captioning model too."""
    Image.MAX_IMAGE_PIXELS = MAX_PIXELS // 2  # it raises at twice as many
    try:
        with Image.open(file) as image:
            if image.format not in PAGED_FORMATS or getattr(image, "n_frames", 1) == 1:
                image.draft("RGB", (MAX_READ_SIDE, MAX_READ_SIDE))
                _read_frame(image, text, shows=True)
                return None
            for number, frame in enumerate(ImageSequence.Iterator(image), 1):
                if number > MAX_FRAMES:
                    raise ReadFailed("too_large", f"The image has more than {MAX_FRAMES} pages.")
                text.begin_page(number)
                _read_frame(frame, text, shows=False)
            return number
    except Image.DecompressionBombError as problem:
        raise ReadFailed("too_large", f"The image has more than {MAX_PIXELS:,} pixels.") from problem
    except (UnidentifiedImageError, OSError, SyntaxError, ValueError, EOFError) as problem:
        raise ReadFailed("unreadable", "The image is broken.") from problem


def text_of_picture(content: bytes) -> str:
    """Return what is printed on a picture in a document; nothing for an icon, and for one that can't be read."""
    Image.MAX_IMAGE_PIXELS = MAX_PIXELS // 2
    try:
        with Image.open(io.BytesIO(content)) as image:
            if min(image.size) < MIN_SIDE or image.width * image.height < MIN_PIXELS:
                return ""
            image.draft("RGB", (MAX_READ_SIDE, MAX_READ_SIDE))
            return printed_text(_on_paper(image))
    except (Image.DecompressionBombError, OSError, SyntaxError, ValueError, EOFError):
        return ""


def _read_frame(image: Image.Image, text: TextBuilder, *, shows: bool) -> None:
    rgb = _on_paper(image)
    text.add(printed_text(rgb))
    if shows and not text.depth and CAPTION in text.roles:
        rgb.thumbnail((MAX_SHOWN_SIDE, MAX_SHOWN_SIDE))
        shown = io.BytesIO()
        rgb.save(shown, "JPEG", quality=85)
        text.send(MediaPiece(shown.getvalue(), "image.jpg", CAPTION))


def _on_paper(image: Image.Image) -> Image.Image:
    """Return an image as it is to be seen, not larger than it is read, without transparency."""
    image.thumbnail((MAX_READ_SIDE, MAX_READ_SIDE))
    upright = ImageOps.exif_transpose(image)
    if upright.mode in {"RGBA", "LA", "PA"} or "transparency" in upright.info:
        # Text is mostly dark, and so is what is transparent, once it is no longer so.
        upright = upright.convert("RGBA")
        paper = Image.new("RGBA", upright.size, "white")
        upright = Image.alpha_composite(paper, upright)
    return upright.convert("RGB")


def printed_text(image: Image.Image) -> str:
    result = _ocr()(np.asarray(image.convert("RGB"))[:, :, ::-1])
    printed = "\n".join(result.txts or ())
    return printed if len(printed) >= MIN_PRINTED_CHARS else ""


@cache
def _ocr() -> Any:
    """Load the models, which are in the package: once in a process, as it takes a second."""
    from rapidocr import RapidOCR  # noqa: PLC0415 - only a file with pictures needs it

    threads = {f"EngineConfig.onnxruntime.{name}_op_num_threads": 1 for name in ("intra", "inter")}
    found = {"Det.limit_type": "max", "Det.limit_side_len": MAX_SEARCHED_SIDE}
    return RapidOCR(params={"Global.log_level": "critical"} | threads | found)
