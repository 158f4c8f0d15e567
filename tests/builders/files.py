"""Make files of all kinds, by the standard library and Pillow."""

import io
import math
import struct
import wave
import zipfile
import zlib
from collections.abc import Iterable, Mapping, Sequence
from email.message import EmailMessage
from functools import cache
from html import escape

from PIL import Image, ImageDraw, ImageFont

KEY = "The spare key is under the third flower pot."
ROWS = (("Thing", "Place"), ("Ladder", "behind the shed"), ("Spare key", "third flower pot"))
OFFICE = "application/vnd.openxmlformats-officedocument."
DOCX, PPTX, XLSX = (
    OFFICE + kind for kind in ("wordprocessingml.document", "presentationml.presentation", "spreadsheetml.sheet")
)
W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
A = 'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"'
P = 'xmlns:p="http://schemas.openxmlformats.org/presentationml/2006/main"'
R = 'xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"'
S = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
RELATIONS = "http://schemas.openxmlformats.org/package/2006/relationships"


def archive(parts: Mapping[str, str | bytes]) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as target:
        for name, content in parts.items():
            target.writestr(name, content)
    return made.getvalue()


def relations(targets: Iterable[str], mode: str = "") -> str:
    each = "".join(f'<Relationship Id="r{n}" Type="x" Target="{to}"{mode}/>' for n, to in enumerate(targets, 1))
    return f'<Relationships xmlns="{RELATIONS}">{each}</Relationships>'


def paragraph(text: str, style: str = "") -> str:
    properties = f'<w:pPr><w:pStyle w:val="{style}"/></w:pPr>' if style else ""
    return f"<w:p>{properties}<w:r><w:t>{text}</w:t></w:r></w:p>"


def docx(body: str, before: str = "", **parts: str | bytes) -> bytes:
    document = f"{before}<w:document {W}><w:body>{body}</w:body></w:document>"
    return archive({"word/document.xml": document} | {f"word/{name}.xml": part for name, part in parts.items()})


def docx_with_pictures(pictures: Sequence[bytes], targets: Sequence[str] = (), mode: str = "") -> bytes:
    """A DOCX of one paragraph, and one with all pictures; `targets` are shown instead of the parts that hold them."""
    names = [f"media/image{number}.png" for number in range(1, len(pictures) + 1)]
    shown_parts = targets or names
    blips = "".join(f'<w:drawing><a:blip r:embed="r{n}"/></w:drawing>' for n in range(1, len(shown_parts) + 1))
    document = f"<w:document {W} {A} {R}><w:body>{paragraph(KEY)}<w:p><w:r>{blips}</w:r></w:p></w:body></w:document>"
    parts: dict[str, str | bytes] = {
        "word/document.xml": document,
        "word/_rels/document.xml.rels": relations(shown_parts, mode),
    }
    return archive(parts | {f"word/{name}": content for name, content in zip(names, pictures, strict=True)})


def pptx_with_pictures(pictures: Sequence[bytes]) -> bytes:
    """A PPTX of an empty slide, and one with a picture for each following one."""
    made = pptx(["", *('<p:pic><a:blip r:embed="r1"/></p:pic>' for _ in pictures)])
    with zipfile.ZipFile(io.BytesIO(made)) as source:
        parts: dict[str, str | bytes] = {
            name: source.read(name).replace(b"<p:sld ", f"<p:sld {R} ".encode()) for name in source.namelist()
        }
    for number, picture in enumerate(pictures, 2):
        parts[f"ppt/media/image{number}.png"] = picture
        parts[f"ppt/slides/_rels/slide{number}.xml.rels"] = relations([f"../media/image{number}.png"])
    return archive(parts)


def docx_table(rows: Sequence[Sequence[str]]) -> str:
    cells = ("".join(f"<w:tc>{paragraph(cell)}</w:tc>" for cell in row) for row in rows)
    return f"<w:tbl>{''.join(f'<w:tr>{row}</w:tr>' for row in cells)}</w:tbl>"


def pptx(slides: Sequence[str], notes: Mapping[int, str] | None = None) -> bytes:
    """Each slide is the XML of its shapes."""
    names = [f"slides/slide{number}.xml" for number in range(1, len(slides) + 1)]
    listed = "".join(f'<p:sldId id="{number}" r:id="r{number}"/>' for number in range(1, len(slides) + 1))
    parts: dict[str, str | bytes] = {
        "ppt/presentation.xml": f"<p:presentation {P} {R}><p:sldIdLst>{listed}</p:sldIdLst></p:presentation>",
        "ppt/_rels/presentation.xml.rels": relations(names),
    }
    for name, slide in zip(names, slides, strict=True):
        parts[f"ppt/{name}"] = f"<p:sld {A} {P}>{slide}</p:sld>"
    for number, text in (notes or {}).items():
        parts[f"ppt/notesSlides/n{number}.xml"] = f"<p:notes {A} {P}>{lines(text)}</p:notes>"
        parts[f"ppt/slides/_rels/slide{number}.xml.rels"] = relations([f"../notesSlides/n{number}.xml"])
    return archive(parts)


def lines(*texts: str) -> str:
    return "".join(f"<a:p><a:r><a:t>{text}</a:t></a:r></a:p>" for text in texts)


def xlsx(sheets: Mapping[str, str], shared: str = "", *, same: bool = False) -> bytes:
    """Each sheet is the XML of its rows. `same`: all titles are of the first one."""
    names = [f"worksheets/sheet{1 if same else number}.xml" for number in range(1, len(sheets) + 1)]
    listed = "".join(f'<sheet name="{title}" sheetId="{n}" r:id="r{n}"/>' for n, title in enumerate(sheets, 1))
    kind = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/"
    related = "".join(
        f'<Relationship Id="r{n}" Type="{kind}worksheet" Target="{name}"/>' for n, name in enumerate(names, 1)
    )
    strings = OFFICE + "spreadsheetml.sharedStrings+xml"
    override = "".join(
        f'<Override PartName="/xl/{name}" ContentType="{OFFICE}spreadsheetml.{what}+xml"/>'
        for name, what in (("workbook.xml", "sheet.main"), *((name, "worksheet") for name in names))
    )
    override += f'<Override PartName="/xl/sharedStrings.xml" ContentType="{strings}"/>' if shared else ""
    types = "http://schemas.openxmlformats.org/package/2006/content-types"
    default = '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
    main = f'<Relationship Id="r1" Type="{kind}officeDocument" Target="xl/workbook.xml"/>'
    parts: dict[str, str | bytes] = {
        "[Content_Types].xml": f'<Types xmlns="{types}">{default}{override}</Types>',
        "_rels/.rels": f'<Relationships xmlns="{RELATIONS}">{main}</Relationships>',
        "xl/workbook.xml": f"<workbook {S} {R}><sheets>{listed}</sheets></workbook>",
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{RELATIONS}">{related}</Relationships>',
    }
    for name, rows in zip(names, sheets.values(), strict=True):
        parts[f"xl/{name}"] = f"<worksheet {S}><sheetData>{rows}</sheetData></worksheet>"
    return archive(parts | ({"xl/sharedStrings.xml": shared} if shared else {}))


def sheet_rows(rows: Sequence[Sequence[str]]) -> str:
    cells = (
        "".join(
            f'<c r="{"ABCDEFGH"[c]}{r}" t="inlineStr"><is><t>{escape(cell)}</t></is></c>' for c, cell in enumerate(row)
        )
        for r, row in enumerate(rows, 1)
    )
    return "".join(f'<row r="{number}">{row}</row>' for number, row in enumerate(cells, 1))


def pdf(contents: Sequence[bytes], size: str = "595 842", images: Sequence[bytes] = (), pages: bytes = b"") -> bytes:
    """Each content is the commands of a page; images are objects that all may draw, as Im0, Im1, and so on."""
    font = b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>"
    objects = [b"<< /Type /Catalog /Pages 2 0 R >>", b"", font, *images]
    drawn = " ".join(f"/Im{number} {number + 4} 0 R" for number in range(len(images)))
    kids = []
    for content in contents:
        objects.append(b"<< /Length %d >>\nstream\n%b\nendstream" % (len(content), content))
        resources = f"<< /Font << /F1 3 0 R >> /XObject << {drawn} >> >>"
        page = f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 {size}] /Contents {len(objects)} 0 R"
        objects.append(f"{page} /Resources {resources} >>".encode())
        kids.append(f"{len(objects)} 0 R")
    objects[1] = pages or f"<< /Type /Pages /Kids [{' '.join(kids)}] /Count {len(kids)} >>".encode()
    made = bytearray(b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n")
    places = []
    for number, each in enumerate(objects, 1):
        places.append(len(made))
        made += b"%d 0 obj\n%b\nendobj\n" % (number, each)
    start = len(made)
    made += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    made += b"".join(b"%010d 00000 n \n" % place for place in places)
    made += b"trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (len(objects) + 1, start)
    return bytes(made)


def shown(*texts: str) -> bytes:
    """The commands of a page with these lines."""
    commands = " T* ".join(f"({text}) Tj" for text in texts)
    return f"BT /F1 12 Tf 72 720 Td 18 TL {commands} ET".encode("cp1252")


def scanned_pdf(pages: Sequence[Sequence[str]], size: str = "595 300") -> bytes:
    images = []
    for texts in pages:
        picture = drawing(texts).convert("L")
        packed = zlib.compress(picture.tobytes())
        head = f"<< /Type /XObject /Subtype /Image /Width {picture.width} /Height {picture.height} /BitsPerComponent 8"
        head += f" /ColorSpace /DeviceGray /Filter /FlateDecode /Length {len(packed)} >>"
        images.append(head.encode() + b"\nstream\n" + packed + b"\nendstream")
    return pdf([b"q 595 0 0 300 0 0 cm /Im%d Do Q" % number for number in range(len(pages))], size, images)


def drawing(texts: Sequence[str]) -> Image.Image:
    canvas = Image.new("RGB", (1200, 80 + 110 * len(texts)), "white")
    pen = ImageDraw.Draw(canvas)
    for number, text in enumerate(texts):
        pen.text((50, 40 + 110 * number), text, fill="black", font=ImageFont.load_default(size=70))
    return canvas


def image(kind: str, *texts: str, turned: bool = False) -> bytes:
    made, canvas = io.BytesIO(), drawing(texts)
    if turned:
        exif = Image.Exif()
        exif[0x0112] = 6  # shown after a quarter turn
        canvas.rotate(90, expand=True).save(made, kind, exif=exif)
    else:
        canvas.save(made, kind)
    return made.getvalue()


def tiff(*pages: str) -> bytes:
    made = io.BytesIO()
    first, *rest = [drawing([text]) for text in pages]
    first.save(made, "TIFF", save_all=True, append_images=rest)
    return made.getvalue()


def mail(text: str | None, html: str | None = None, attachments: Sequence[tuple[bytes, str, str]] = ()) -> EmailMessage:
    made = EmailMessage()
    made["From"], made["To"], made["Subject"] = "Ana Costa <ana@example.org>", "ben@example.org", "Schlüssel"
    made["Date"] = "Sat, 14 Mar 2026 21:41:00 +0100"
    if text is not None:
        made.set_content(text, cte="quoted-printable")
    if html is not None:
        (made.add_alternative if text is not None else made.set_content)(html, subtype="html")
    for content, media_type, name in attachments:
        main, _, sub = media_type.partition("/")
        made.add_attachment(content, maintype=main, subtype=sub, filename=name)
    return made


def forwarded() -> bytes:
    made = mail("See below.")
    made.add_attachment(mail(KEY))
    return made.as_bytes()


def sound(seconds: float = 1.0, rate: int = 8000) -> bytes:
    """A WAV of a tone that pauses every ten seconds."""
    made = io.BytesIO()
    with wave.open(made, "wb") as target:
        target.setnchannels(1)
        target.setsampwidth(2)
        target.setframerate(rate)
        second = b"".join(struct.pack("<h", int(9000 * math.sin(n * 0.35))) for n in range(rate))
        for number in range(int(seconds)):
            target.writeframes(bytes(2 * rate) if number % 10 == 9 else second)
    return made.getvalue()


MAIN = "word/document.xml"


def bomb(size: int) -> bytes:
    """A DOCX whose one word has this many characters."""
    made = io.BytesIO()
    with (
        zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as target,
        target.open("word/document.xml", "w") as part,
    ):
        part.write(f"<w:document {W}><w:body><w:p><w:r><w:t>".encode())
        for _ in range(size >> 20):
            part.write(b"a" * (1 << 20))
        part.write(b"</w:t></w:r></w:p></w:body></w:document>")
    return made.getvalue()


def entities(levels: int, value: str) -> str:
    each = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, levels))
    return f'<!DOCTYPE d [<!ENTITY e0 "{value}">{each}]>'


@cache
def dark_pixels(width: int, height: int) -> bytes:
    """A PNG of a megabyte or two with this many black pixels."""
    packer = zlib.compressobj(1)
    rows = b"".join(packer.compress(bytes(1 + width // 8)) for _ in range(height)) + packer.flush()

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    head = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


def circular_tiff() -> bytes:
    """A TIFF whose page is followed by itself."""
    made = bytearray(image("TIFF", "LOOP"))
    [place] = struct.unpack_from("<I", made, 4)
    [entries] = struct.unpack_from("<H", made, place)
    struct.pack_into("<I", made, place + 2 + 12 * entries, place)
    return bytes(made)


def mails_in_mails(depth: int) -> bytes:
    made = mail(KEY)
    for _ in range(depth):
        outer = mail("See below.")
        outer.add_attachment(made)
        made = outer
    return made.as_bytes()


def encrypted_pdf() -> bytes:
    words = b"0" * 64
    made = pdf([shown(KEY)])
    encryption = b"/Encrypt << /Filter /Standard /V 1 /R 2 /P -4 /O <%b> /U <%b> >> /ID [<00> <00>] /Root" % (
        words,
        words,
    )
    return made.replace(b"/Root", encryption)


def encrypted_docx() -> bytes:
    """The beginning of a compound file that names an encrypted package."""
    return bytes.fromhex("d0cf11e0a1b11ae1") + bytes(1000) + "EncryptedPackage".encode("utf-16-le") + bytes(1000)
