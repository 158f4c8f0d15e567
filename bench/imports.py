"""Imports of exports of 100,000 messages, each format: `python -m bench.imports [FORMAT…] [--messages N]`.

Each export is imported by a process of its own into a sink that embeds nothing: a SQLite table of the turns' ids. It
is killed in the middle, continued, and done again. It prints a row for each format: size; of the second import messages
a second of processor time and peak memory beyond that of an import of one message; messages noted at the kill, sent
again after it, and stored in the end; what the second import stored, and rows that it added.
"""

import argparse
import asyncio
import json
import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any, cast

from modestream_client.imports import FORMATS, ExportFormat, read_export
from modestream_client.imports.publishing import Outcome, Tally, publish, read_beside

from tests.builders import exports

Json = dict[str, Any]

CONVERSATION = 50
"""Messages of one conversation, channel day or session."""

BEGIN = datetime(2024, 1, 1, tzinfo=UTC)
SENTENCE = "The boat needs new paint before spring and Ana wants to book the slip in Faro while the harbour is quiet"
WORDS = SENTENCE.split()


def text_of(number: int) -> str:
    """Return the text of a message, of 80 to 480 characters."""
    return f"Message {number}: " + " ".join(WORDS[(number + n) % len(WORDS)] for n in range(14 + number * 7 % 80))


def moment(number: int) -> datetime:
    return BEGIN + timedelta(seconds=37 * number)


def iso(number: int) -> str:
    return moment(number).isoformat().replace("+00:00", "Z")


def talks(messages: int) -> Iterator[range]:
    for first in range(0, messages, CONVERSATION):
        yield range(first, min(first + CONVERSATION, messages))


def json_list(values: Iterable[Any], before: str = "", after: str = "") -> Iterator[str]:
    """Yield the pieces of a list in JSON."""
    yield before + "["
    for number, value in enumerate(values):
        yield (",\n" if number else "") + json.dumps(value)
    yield "]" + after


def chatgpt(messages: int) -> Iterator[str]:
    def talk(numbers: range) -> Json:
        nodes = [
            exports.node(
                f"n{n}",
                f"n{n - 1}" if n > numbers[0] else "root",
                "assistant" if n % 2 else "user",
                text_of(n),
                create_time=moment(n).timestamp(),
            )
            for n in numbers
        ]
        [made] = exports.chatgpt(*nodes, conversation_id=f"talk-{numbers[0]}")
        return made

    return json_list(map(talk, talks(messages)))


def claude(messages: int) -> Iterator[str]:
    def talk(numbers: range) -> Json:
        told = [
            {"uuid": f"m{n}", "sender": "assistant" if n % 2 else "human", "text": text_of(n), "created_at": iso(n)}
            for n in numbers
        ]
        return {"uuid": f"talk-{numbers[0]}", "name": "Boats", "chat_messages": told}

    return json_list(map(talk, talks(messages)))


def json_lines(values: Iterable[Json]) -> Iterator[str]:
    return (json.dumps(value) + "\n" for value in values)


def claude_code(messages: int) -> Iterator[str]:
    return json_lines(
        exports.session_line(uuid=f"u{n}", timestamp=iso(n), message={"role": "user", "content": text_of(n)})
        for n in range(messages)
    )


def codex(messages: int) -> Iterator[str]:
    yield from json_lines(exports.rollout())
    for n in range(messages):
        item = exports.spoken("assistant" if n % 2 else "user", text_of(n))
        yield json.dumps({"timestamp": iso(n), "type": "response_item", "payload": item}) + "\n"


def whatsapp(messages: int) -> Iterator[str]:
    for n in range(messages):
        yield f"{moment(n):%d/%m/%y, %H:%M} - {'Ben' if n % 2 else 'Ana'}: {text_of(n)}\n"


def telegram(messages: int) -> Iterator[str]:
    told = (
        exports.sent(id=n, date=f"{moment(n):%Y-%m-%dT%H:%M:%S}", date_unixtime=f"{moment(n):%s}", text=text_of(n))
        for n in range(messages)
    )
    return json_list(told, '{"name":"Boats","type":"private_group","id":41,"messages":', "}")


def mbox(messages: int) -> Iterator[str]:
    for n in range(messages):
        headers = {"Message_ID": f"<m{n}@a>", "Date": format_datetime(moment(n)), "Subject": f"Boats {n // 5}"}
        if n % 5:
            headers["References"] = f"<m{n - n % 5}@a>"
        yield exports.mail(text_of(n), **headers).decode()


def jsonl(messages: int) -> Iterator[str]:
    return json_lines(
        exports.turn_line(
            turn_id=f"t{n}", conversation_id=f"c{n // CONVERSATION}", content=text_of(n), occurred_at=iso(n)
        )
        for n in range(messages)
    )


def mem0(messages: int) -> Iterator[str]:
    return json_list(exports.remembered(f"m{n}", memory=text_of(n), created_at=iso(n)) for n in range(messages))


MAKERS: dict[str, Callable[[int], Iterator[str]]] = {
    "chatgpt": chatgpt,
    "claude": claude,
    "claude-code": claude_code,
    "codex": codex,
    "whatsapp": whatsapp,
    "telegram": telegram,
    "mbox": mbox,
    "jsonl": jsonl,
    "mem0": mem0,
}


def write_export(export_format: str, path: Path, messages: int) -> None:
    if export_format == "slack":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as target:
            target.writestr("users.json", json.dumps([{"id": "U1", "profile": {"real_name": "Ana Costa"}}]))
            target.writestr("channels.json", json.dumps([{"id": "C1", "name": "boats"}]))
            for day, numbers in enumerate(talks(messages)):
                posts = [exports.post(text=text_of(n), ts=f"{moment(n).timestamp():.6f}") for n in numbers]
                target.writestr(f"boats/{(BEGIN + timedelta(days=day)):%Y-%m-%d}.json", json.dumps(posts))
        return
    with path.open("w", encoding="utf-8") as file:
        file.writelines(MAKERS[export_format](messages))


async def import_into(export_format: str, path: Path, database: Path) -> Tally:
    """Import a file into a table of ids, after what an earlier process has noted; the ids are durable first."""
    journal = database.with_suffix(".journal")
    tally = Tally.of(json.loads(journal.read_text())) if journal.exists() else Tally()
    with sqlite3.connect(database, isolation_level=None) as ids, path.open("rb") as source:
        ids.execute("PRAGMA journal_mode=WAL")
        ids.execute("PRAGMA synchronous=OFF")
        ids.execute("CREATE TABLE IF NOT EXISTS turns (conversation, turn, PRIMARY KEY (conversation, turn))")

        async def send(turn: Json, _place: int | str) -> tuple[Outcome, str | None]:
            key = turn["conversation_id"], turn["turn_id"]
            is_new = ids.execute("INSERT OR IGNORE INTO turns VALUES (?, ?)", key).rowcount
            return "stored" if is_new else "duplicate", None

        def count(now: Tally) -> None:
            if now.read % 1000 == 0:
                written = journal.with_suffix(".new")
                written.write_text(json.dumps(now.result()))
                written.replace(journal)

        await publish(read_beside(read_export(source, cast(ExportFormat, export_format))), send, tally, count)
    journal.unlink(missing_ok=True)
    return tally


def start(export_format: str, path: Path, database: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "bench.imports", "--child", export_format, str(path), str(database)]
    return subprocess.Popen(command, stdout=subprocess.PIPE)


def finished(process: subprocess.Popen[bytes]) -> Json:
    output, _ = process.communicate()
    if process.returncode:
        raise RuntimeError(f"an import ended with {process.returncode}")
    told: Json = json.loads(output)
    return told


def killed_in_the_middle(export_format: str, path: Path, database: Path, messages: int) -> int:
    """Kill an import once half of the messages are noted; return how many were."""
    process, journal = start(export_format, path, database), database.with_suffix(".journal")
    noted = 0
    while process.poll() is None and noted < messages // 2:
        with suppress(FileNotFoundError, ValueError):
            noted = json.loads(journal.read_text())["read"]
        time.sleep(0.005)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    return noted


def rows(database: Path) -> int:
    with sqlite3.connect(database) as ids:
        [count] = ids.execute("SELECT count(*) FROM turns").fetchone()
    return int(count)


def measured(export_format: str, messages: int, folder: Path) -> str:
    """Return a row of the table."""
    path, least = folder / "export", folder / "one"
    write_export(export_format, path, messages)
    write_export(export_format, least, 1)
    size = path.stat().st_size
    base = finished(start(export_format, least, folder / "least.db"))["peak_mb"]
    database = folder / "turns.db"
    noted = killed_in_the_middle(export_format, path, database, messages)
    resumed = finished(start(export_format, path, database))
    stored = rows(database)
    again = finished(start(export_format, path, database))
    return (
        f"| `{export_format}` | {size / 1e6:.0f} MB | {again['read'] / again['seconds']:,.0f} "
        f"| {again['peak_mb'] - base:.0f} MB | {noted:,} | {resumed['duplicate']:,} | {stored:,} "
        f"| {again['stored']:,}, {rows(database) - stored:,} |"
    )


def peak_mb() -> float:
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("formats", nargs="*")
    parser.add_argument("--messages", type=int, default=100_000)
    parser.add_argument("--child", action="store_true")
    options = parser.parse_args()
    if options.child:
        export_format, path, database = options.formats
        began = time.process_time()
        tally = asyncio.run(import_into(export_format, Path(path), Path(database)))
        seconds = time.process_time() - began
        sys.stdout.write(json.dumps({**tally.counts(), "seconds": seconds, "peak_mb": peak_mb()}))
        return
    for export_format in options.formats or FORMATS:
        with tempfile.TemporaryDirectory() as folder:
            sys.stdout.write(measured(export_format, options.messages, Path(folder)) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
