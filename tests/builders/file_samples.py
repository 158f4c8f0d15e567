"""Files as people have them, and files that attack a reader, with what is to become of each."""

import json
from collections.abc import Callable
from dataclasses import dataclass

from tests.builders.files import (
    DOCX,
    KEY,
    PPTX,
    ROWS,
    XLSX,
    A,
    P,
    R,
    S,
    W,
    archive,
    bomb,
    circular_tiff,
    dark_pixels,
    docx,
    docx_table,
    docx_with_pictures,
    encrypted_docx,
    encrypted_pdf,
    entities,
    forwarded,
    image,
    lines,
    mail,
    mails_in_mails,
    paragraph,
    pdf,
    pptx,
    pptx_with_pictures,
    relations,
    scanned_pdf,
    sheet_rows,
    shown,
    sound,
    tiff,
    xlsx,
)  # fmt: skip

PDF, HTML, JSON, EML, BYTES = (
    "application/pdf",
    "text/html",
    "application/json",
    "message/rfc822",
    "application/octet-stream",
)


@dataclass(frozen=True)
class Sample:
    """A file: its bytes, what it is called, and what is in its text, or why it has none."""

    make: Callable[[], bytes]
    name: str
    media_type: str
    says: tuple[str, ...] = ()
    pages: int | None = None
    fails: frozenset[str] = frozenset()


def html(body: str, head: str = "") -> str:
    return f"<!doctype html><html><head><title>House</title>{head}</head><body>{body}</body></html>"


TABLE = "\n".join(",".join(row) for row in ROWS)
ARTICLE = f"<nav>Home Imprint</nav><main><h1>Rules</h1><p>{KEY}</p></main><footer>Cookies</footer>"
NOISE = "<style>p{color:#abc}</style><script>var secret = 1;</script>"
TEXT_BOX = f"<w:txbxContent>{paragraph(KEY)}</w:txbxContent>"
TWICE = f"<AlternateContent><Choice>{TEXT_BOX}</Choice><Fallback>{TEXT_BOX}</Fallback></AlternateContent>"
GERMAN = "Der Schlüssel hängt über der Tür, fürs Öffnen drücken. Größere Gäste bücken sich."
RUSSIAN = "Ключ лежит под третьим цветочным горшком. Пожалуйста, верните ключ вечером."
JAPANESE = "鍵は三番目の植木鉢の下にあります。夕方には元の場所に戻してください。" * 3

REAL = {
    "text": Sample(KEY.encode, "a.txt", "text/plain", (KEY,)),
    "text of Windows": Sample(f"\ufeff{KEY}\r\n\r\nTwo\r\n".encode, "a.txt", "text/plain", (KEY, "Two")),
    "text in Latin-1": Sample(lambda: GERMAN.encode("latin-1"), "a.txt", "text/plain", ("Schlüssel hängt",)),
    "text in UTF-16": Sample(lambda: GERMAN.encode("utf-16"), "a.txt", "text/plain", ("Schlüssel hängt",)),
    "text in UTF-16 without a mark": Sample(lambda: KEY.encode("utf-16-le"), "a.txt", "text/plain", (KEY,)),
    "text in Cyrillic": Sample(lambda: RUSSIAN.encode("cp1251"), "a.txt", "text/plain", ("под третьим",)),
    "text in Japanese": Sample(lambda: JAPANESE.encode("shift_jis"), "a.txt", "text/plain", ("植木鉢",)),
    "a log": Sample(lambda: b"12:00 started\n12:01 key found\n" * 500, "a.log", BYTES, ("key found",)),
    "source code": Sample(lambda: b"def key():\n    return 'pot'\n", "a.py", "text/x-python", ("return 'pot'",)),
    "Markdown": Sample(f"# House\n\n{KEY}\n\n## Keys\n\n- one\n".encode, "a.md", "text/plain", ("## Keys",)),
    "a page": Sample(lambda: html(ARTICLE, NOISE).encode(), "a.html", HTML, (KEY, "Rules")),
    "a page in Latin-1": Sample(
        lambda: html(f"<p>{GERMAN}</p>", '<meta charset="iso-8859-1">').encode("latin-1"), "a.htm", HTML, ("Tür",)
    ),
    "a page with a table": Sample(
        lambda: html(f"<table>{''.join(f'<tr><td>{a}<td>{b}</tr>' for a, b in ROWS)}</table>").encode(),
        "a.html",
        HTML,
        ("Spare key | third flower pot",),
    ),
    "a table": Sample(TABLE.encode, "a.csv", "text/csv", ("Thing: Spare key; Place: third flower pot",)),
    "a table of Excel": Sample(
        lambda: "Ding;Ort\r\nSchlüssel;Tür\r\nLeiter;Schuppen, hinten\r\n".encode("cp1252"),
        "a.csv",
        BYTES,
        ("Ding: Schlüssel; Ort: Tür", "Ort: Schuppen, hinten"),
    ),
    "a table with tabs": Sample(
        lambda: TABLE.replace(",", "\t").encode(), "a.tsv", "text/tab-separated-values", ("Place: third flower pot",)
    ),
    "JSON": Sample(
        lambda: json.dumps({"house": {"keys": [{"name": "spare", "place": "pot"}]}}).encode(),
        "a.json",
        JSON,
        ("house / keys: name: spare; place: pot",),
    ),
    "JSON in lines": Sample(lambda: b'{"key": "spare"}\n{"key": "main"}\n', "a.jsonl", "text/plain", ("key: main",)),
    "JSON with half a character": Sample(lambda: b'{"key": "\\ud83d pot"}', "a.json", JSON, ("pot",)),
    "PDF": Sample(lambda: pdf([shown("One"), shown(KEY), shown("Three")]), "a.pdf", PDF, (KEY,), 3),
    "PDF with umlauts": Sample(lambda: pdf([shown("Schlüssel über Tür")]), "a.pdf", PDF, ("über Tür",), 1),
    "PDF of an unknown name": Sample(lambda: pdf([shown(KEY)]), "a", BYTES, (KEY,), 1),
    "PDF called a text": Sample(lambda: pdf([shown(KEY)]), "a.txt", "text/plain", (KEY,), 1),
    "a scanned PDF": Sample(lambda: scanned_pdf([["POT NUMBER 4711"]]), "a.pdf", PDF, ("4711",), 1),
    "DOCX": Sample(
        lambda: docx(paragraph("House", "Heading1") + paragraph(KEY) + paragraph("Keys &amp; pots")),
        "a.docx",
        DOCX,
        ("House", KEY, "Keys & pots"),
    ),
    "DOCX with a table": Sample(
        lambda: docx(docx_table(ROWS)), "a.docx", DOCX, ("Thing: Spare key; Place: third flower pot",)
    ),
    "DOCX with notes, boxes and controls": Sample(
        lambda: docx(
            f"<w:sdt><w:sdtContent>{paragraph('In a control')}</w:sdtContent></w:sdt><w:p><w:r>{TWICE}</w:r></w:p>",
            footnotes=f"<w:footnotes {W}>{paragraph('At the foot')}</w:footnotes>",
        ),
        "a.docx",
        "application/zip",
        ("In a control", KEY, "At the foot"),
    ),
    "DOCX with a picture": Sample(
        lambda: docx_with_pictures([image("PNG", "POT NUMBER 4711")]), "a.docx", DOCX, (KEY, "4711")
    ),
    "PPTX with a picture": Sample(
        lambda: pptx_with_pictures([image("JPEG", "POT NUMBER 4711")]), "a.pptx", PPTX, ("4711",), 2
    ),
    "DOCX with macros": Sample(
        lambda: docx(paragraph(KEY), vbaProject=b"\xd0\xcf\x11\xe0 Sub AutoOpen"),
        "a.docm",
        "application/vnd.ms-word.document.macroEnabled.12",
        (KEY,),
    ),
    "PPTX": Sample(lambda: pptx([lines("One"), lines(KEY)], {2: "To be said"}), "a.pptx", PPTX, (KEY, "To be said"), 2),
    "PPTX with a table": Sample(
        lambda: pptx([f"<a:tbl><a:tr><a:tc>{lines('Key')}</a:tc><a:tc>{lines('Pot')}</a:tc></a:tr></a:tbl>"]),
        "a.pptx",
        BYTES,
        ("Key | Pot",),
        1,
    ),
    "XLSX": Sample(
        lambda: xlsx({"Trees": sheet_rows([("Tree", "Year"), ("Apple", "1987")]), "Keys": sheet_rows(ROWS)}),
        "a.xlsx",
        XLSX,
        ("Tree: Apple; Year: 1987", "Thing: Spare key; Place: third flower pot"),
        2,
    ),
    "XLSX with formulas": Sample(
        lambda: xlsx({"Sums": '<row r="1"><c r="A1"><f>1+2</f><v>3</v></c><c r="B1" t="b"><v>1</v></c></row>'}),
        "a.xlsx",
        XLSX,
        ("3; True",),
        1,
    ),
    "XLSX with shared strings": Sample(
        lambda: xlsx({"Keys": ONE_STRING}, f"<sst {S}><si><t>{KEY}</t></si></sst>"), "a.xlsx", XLSX, (KEY,), 1
    ),
    "an e-mail": Sample(
        lambda: mail(f"Grüße!\n{KEY}", f"<p>{KEY}</p>").as_bytes(),
        "a.eml",
        EML,
        ("Ana Costa", "Subject: Schlüssel", "Grüße!", KEY),
    ),
    "an e-mail in HTML": Sample(lambda: mail(None, html(ARTICLE)).as_bytes(), "a.eml", "text/plain", (KEY,)),
    "an e-mail with attachments": Sample(
        lambda: mail(
            "Attached.",
            None,
            [
                (pdf([shown("In the PDF")]), PDF, "a.pdf"),
                (docx(paragraph("In the DOCX")), BYTES, "b.docx"),
                (b"\0" * 100, "application/x-thing", "c.bin"),
                (TABLE.encode(), "text/csv", "d.csv"),
            ],
        ).as_bytes(),
        "a.eml",
        EML,
        ("Attachment: a.pdf", "In the PDF", "In the DOCX", "c.bin", "Place: third"),
    ),
    "a forwarded e-mail": Sample(forwarded, "a.eml", BYTES, ("See below.", KEY)),
    "PNG": Sample(lambda: image("PNG", "POT NUMBER 4711"), "a.png", "image/png", ("4711",)),
    "a photo that is turned": Sample(
        lambda: image("JPEG", "POT NUMBER 4711", turned=True), "a", "image/jpeg", ("4711",)
    ),
    "GIF called PNG": Sample(lambda: image("GIF", "POT NUMBER 4711"), "a.png", "image/png", ("4711",)),
    "WebP": Sample(lambda: image("WEBP", "POT NUMBER 4711"), "a.webp", BYTES, ("4711",)),
    "a fax": Sample(lambda: tiff("PAGE 1234", "POT 4711"), "a.tiff", "image/tiff", ("1234", "4711"), 2),
    "nothing": Sample(lambda: b"", "a.bin", BYTES),
    "a page called a PDF": Sample(lambda: html(ARTICLE).encode(), "a.pdf", PDF, (KEY,)),
}
"""Files as people have them."""


UNREADABLE, TOO_LARGE, NO_READER = frozenset({"unreadable"}), frozenset({"too_large"}), frozenset({"no_reader"})
EITHER = UNREADABLE | TOO_LARGE
READY = frozenset({"ready"})
ANY = EITHER | READY

SAME_SLIDE = '<p:sldId r:id="r1"/>'

FORMS = b"/Im0 Do " * 50


def form_of_forms(number: int) -> bytes:
    """A form that draws the next one fifty times."""
    resources = f"<< /XObject << /Im0 {min(number + 1, 24)} 0 R >> >>"
    head = f"<< /Type /XObject /Subtype /Form /BBox [0 0 9 9] /Resources {resources} /Length {len(FORMS)} >>"
    return head.encode() + b"\nstream\n" + FORMS + b"\nendstream"


LONG = "a" * (50 << 20)
ONE_STRING = '<row r="1"><c r="A1" t="s"><v>0</v></c></row>'
PARTS = b"From: a\nTo: b\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=x\n\n" + b"--x\n\na\n" * 20_000

HOSTILE = {
    "a DOCX that unpacks to 256 MB": Sample(lambda: bomb(256 << 20), "a.docx", DOCX, fails=TOO_LARGE),
    "a DOCX that unpacks to 100 MB": Sample(lambda: bomb(100 << 20), "a.docx", DOCX, fails=TOO_LARGE),
    "entities that double": Sample(
        lambda: docx("<w:p><w:r><w:t>&e9;</w:t></w:r></w:p>", entities(10, "haha")), "a.docx", DOCX, fails=UNREADABLE
    ),
    "an entity told a thousand times": Sample(
        lambda: docx(paragraph("&e0;" * 1000), entities(1, "a" * 100_000)), "a.docx", DOCX, fails=UNREADABLE
    ),
    "an entity of a file": Sample(
        lambda: docx(paragraph("&x;"), '<!DOCTYPE d [<!ENTITY x SYSTEM "file:///etc/passwd">]>'),
        "a.docx",
        DOCX,
        fails=UNREADABLE,
    ),
    "a DOCX of 200,000 elements": Sample(lambda: docx("<w:p/>" * 200_000 + paragraph(KEY)), "a.docx", DOCX, (KEY,)),
    "a DOCX nested deeply": Sample(lambda: docx("<w:sdt>" * 200_000 + "</w:sdt>" * 200_000), "a.docx", DOCX, fails=ANY),
    "half of a DOCX": Sample(lambda: docx(paragraph(KEY))[:200], "a.docx", DOCX, fails=UNREADABLE),
    "a DOCX with a password": Sample(encrypted_docx, "a.docx", DOCX, fails=UNREADABLE),
    "a DOCX with a picture of 2,500 million pixels": Sample(
        lambda: docx_with_pictures([dark_pixels(50_000, 50_000)]), "a.docx", DOCX, (KEY,)
    ),
    "a DOCX with half of a picture": Sample(
        lambda: docx_with_pictures([image("PNG", KEY)[:2000]]), "a.docx", DOCX, (KEY,)
    ),
    "a DOCX with a picture that unpacks to 200 MB": Sample(
        lambda: docx_with_pictures([bytes(200 << 20)]), "a.docx", DOCX, (KEY,)
    ),
    "a DOCX with 10,000 pictures": Sample(
        lambda: docx_with_pictures([image("PNG", KEY)[:200]] * 10_000), "a.docx", DOCX, (KEY,)
    ),
    "a DOCX that shows a picture 50,000 times": Sample(
        lambda: docx_with_pictures([image("PNG", "POT 4711")], ["media/image1.png"] * 50_000),
        "a.docx",
        DOCX,
        (KEY, "4711"),
    ),
    "a DOCX with pictures elsewhere": Sample(
        lambda: docx_with_pictures([], ["../../../etc/passwd", "file:///etc/passwd", "/word/document.xml"]),
        "a.docx",
        DOCX,
        (KEY,),
    ),
    "a DOCX with a picture outside": Sample(
        lambda: docx_with_pictures([], ["http://127.0.0.1:1/a.png"], ' TargetMode="External"'), "a.docx", DOCX, (KEY,)
    ),
    "a slide shown 100,000 times": Sample(
        lambda: archive(
            {
                "ppt/presentation.xml": f"<p:presentation {P} {R}>{SAME_SLIDE * 100_000}</p:presentation>",
                "ppt/_rels/presentation.xml.rels": relations(["slides/slide1.xml"]),
                "ppt/slides/slide1.xml": f"<p:sld {A} {P}>{lines('a' * 1000)}</p:sld>",
            }
        ),
        "a.pptx",
        PPTX,
        fails=TOO_LARGE,
    ),
    "a slide outside": Sample(
        lambda: archive(
            {
                "ppt/presentation.xml": f'<p:presentation {P} {R}><p:sldId r:id="r1"/></p:presentation>',
                "ppt/_rels/presentation.xml.rels": relations(["http://127.0.0.1:1/a.xml"], ' TargetMode="External"'),
            }
        ),
        "a.pptx",
        PPTX,
        pages=0,
    ),
    "a sheet with one cell far away": Sample(
        lambda: xlsx({"Far": '<row r="1048576"><c r="XFD1048576" t="inlineStr"><is><t>far</t></is></c></row>'}),
        "a.xlsx",
        XLSX,
        fails=ANY,
    ),
    "a sheet of far cells": Sample(
        lambda: xlsx({"Far": "".join(f'<row r="{n}"><c r="XFD{n}"><v>1</v></c></row>' for n in range(1, 20_000))}),
        "a.xlsx",
        XLSX,
        fails=ANY,
    ),
    "a sheet that grows": Sample(
        lambda: xlsx({"Big": ONE_STRING}, f"<sst {S}><si><t>{LONG}</t></si></sst>"), "a.xlsx", XLSX, fails=TOO_LARGE
    ),
    "a PDF that ends in the middle": Sample(lambda: pdf([shown(KEY)])[:120], "a.pdf", PDF, fails=UNREADABLE),
    "a PDF whose pages are itself": Sample(
        lambda: pdf([shown(KEY)], pages=b"<< /Type /Pages /Kids [2 0 R 2 0 R] /Count 2 >>"),
        "a.pdf",
        PDF,
        fails=UNREADABLE | {"ready"},
    ),
    "a PDF of a thousand million pages": Sample(
        lambda: pdf([shown(KEY)], pages=b"<< /Type /Pages /Kids [5 0 R] /Count 1000000000 >>"), "a.pdf", PDF, fails=ANY
    ),
    "a PDF with a password": Sample(encrypted_pdf, "a.pdf", PDF, fails=UNREADABLE),
    "a PDF whose page is a mile": Sample(
        lambda: scanned_pdf([["POT 4711"]], "900000 900000"), "a.pdf", PDF, fails=READY
    ),
    "a PDF of forms in forms": Sample(
        lambda: pdf([FORMS], images=[form_of_forms(n) for n in range(4, 25)]), "a.pdf", PDF, fails=ANY
    ),
    "noise called a PDF": Sample(lambda: bytes(range(256)) * 20, "a.pdf", PDF, fails=UNREADABLE),
    "a picture of 2,500 million pixels": Sample(
        lambda: dark_pixels(50_000, 50_000), "a.png", "image/png", fails=TOO_LARGE
    ),
    "half of a picture": Sample(lambda: image("PNG", KEY)[:2000], "a.png", "image/png", fails=UNREADABLE),
    "a TIFF that loops": Sample(circular_tiff, "a.tiff", "image/tiff", fails=ANY),
    "a page nested deeply": Sample(lambda: html("<div>" * 300_000 + KEY).encode(), "a.html", HTML, fails=ANY),
    "a page of open tags": Sample(lambda: b"<html>" + b"<a><b><i>" * 200_000, "a.html", HTML, fails=ANY),
    "JSON nested deeply": Sample(lambda: b"[" * 2_000_000, "a.json", JSON, fails=UNREADABLE),
    "JSON of deep objects": Sample(
        lambda: b'{"a":' * 900 + b"1" + b"}" * 900, "a.json", JSON, fails=UNREADABLE | {"ready"}
    ),
    "a table with an open quotation mark": Sample(lambda: b'a,"' + b"b,c\n" * 200_000, "a.csv", "text/csv", fails=ANY),
    "a table of a million columns": Sample(lambda: b",x" * 900_000, "a.csv", "text/csv", fails=ANY),
    "e-mails in e-mails": Sample(lambda: mails_in_mails(40), "a.eml", EML, ("See below.",)),
    "an e-mail with 20,000 parts": Sample(lambda: PARTS, "a.eml", EML, fails=TOO_LARGE),
    "an e-mail with a bomb": Sample(
        lambda: mail(KEY, None, [(bomb(200 << 20), DOCX, "a.docx")]).as_bytes(), "a.eml", EML, (KEY,)
    ),
    "a text that begins like an e-mail": Sample(
        lambda: b"Subject: keys\r\n" + b"  - one\r\n" * 500 + KEY.encode(), "a.txt", "text/plain", (KEY,), fails=READY
    ),
    "200,000 headings": Sample(lambda: b"# a\n" * 200_000, "a.md", "text/markdown", fails=READY),
    "a table of 150,000 columns and short rows": Sample(
        lambda: ",".join(f"a{n}" for n in range(150_000)).encode() + b"\nx" * 150_000, "a.csv", "text/csv", fails=READY
    ),
    "a table of quotation marks in one line": Sample(lambda: b"'a' b," * 40_000, "a.csv", "text/csv", fails=READY),
    "a page whose tags end nothing": Sample(
        lambda: b"<html>" + b"<div></x>" * 200_000, "a.html", HTML, fails=UNREADABLE
    ),
    "an e-mail in an unknown encoding": Sample(
        f"From: a\nTo: b\nContent-Type: text/plain; charset=iso-8859-8-x\n\n{KEY}".encode, "a.eml", EML, (KEY,)
    ),
    "more text than a file may have": Sample(lambda: b"again " * 333_334, "a.txt", "text/plain", fails=TOO_LARGE),
    "one endless word": Sample(lambda: b"a" * 1_999_000, "a.txt", "text/plain", fails=READY),
    "white space": Sample(lambda: b" \n" * 990_000, "a.txt", "text/plain", fails=READY),
    "an archive": Sample(lambda: archive({"a.txt": KEY}), "a.zip", "application/zip", fails=NO_READER),
    "an archive called DOCX": Sample(lambda: archive({"../../a.txt": KEY}), "a.docx", DOCX, fails=NO_READER),
    "a program": Sample(
        lambda: b"\x7fELF\2\1\1\0" + bytes(range(256)) * 9, "a.exe", "application/x-elf", fails=NO_READER
    ),
    "numbers that might be UTF-16": Sample(lambda: b"\0\1junk" * 50, "a.bin", BYTES, fails=NO_READER),
    "an empty archive": Sample(lambda: archive({}), "a.zip", BYTES, fails=NO_READER),
    "sound without a model": Sample(sound, "a.wav", "audio/wav", fails=frozenset({"no_model"})),
}
"""Files that attack a reader, or that it has no text of; `ready` among the codes: it may also be read."""
