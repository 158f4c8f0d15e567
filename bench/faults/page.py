"""`docs/faults.md` from the rows that were measured."""

from collections.abc import Sequence
from dataclasses import asdict

from bench.faults.row import Row, Size

HEAD = """# Faults

What each fault costs, from `python -m bench.faults --turns {turns} --per-second {per_second:g} --write` on {cores}
cores, with a load average of {least:.0f} to {most:.0f} in the end of each row, as others used the machine. {users}
users write {per_second:g} turns a second and another user asks one question a second; the fault comes in the middle.

- **in**: turns that were acknowledged, by Kafka or by the gateway. **found**: listed afterwards, and those of a sample
  answered to a question. **doubled**: memories too many.
- **again**: writes that were not acknowledged and were sent again, some of which had been written.
- **well**: seconds from the fault, its own duration included, until all turns that were acknowledged until a
  second after its end are found and embedded.
- **p95**: milliseconds of the other user's questions before the fault, and from it until all is well. A question that
  fails is asked again, and its time runs on.

| fault | in | found | doubled | again | well s | p95 before | during | remark |
| --- | --- | --- | --- | --- | --- | --- | --- | --- |
"""


SERVER_HEAD = """
## With vectors on a Qdrant server

These rows were run on a stand-in, not on Qdrant: Qdrant's engine in its embedded form behind the same gRPC
(`tests/fakes/qdrant_server`). What is lost or doubled is this system's doing; what takes how long says nothing
about Qdrant, and little about this system where the load average is that high ({least:.0f} to {most:.0f}).

| fault | in | found | doubled | again | well s | p95 before | during | remark |
| --- | --- | --- | --- | --- | --- | --- | --- | --- |
"""


def page(
    rows: Sequence[Row], cores: int, users: int, size: Size, missing: Sequence[str], on_server: Sequence[Row] = ()
) -> str:
    """Return the page; `missing` says what was not run, and why; `on_server` are rows of the Qdrant server."""
    loads = [row.load for row in rows]
    head = HEAD.format(
        cores=cores, least=min(loads, default=0), most=max(loads, default=0), users=users, **asdict(size)
    )
    body = "".join(line(row) + "\n" for row in rows)
    foot = "".join(f"- {one}\n" for one in missing)
    return head + body + server_section(on_server) + ("\nNot run:\n\n" + foot if foot else "")


def server_section(rows: Sequence[Row]) -> str:
    """Return the section of the server's rows; empty without any."""
    if not rows:
        return ""
    loads = [row.load for row in rows]
    return SERVER_HEAD.format(least=min(loads), most=max(loads)) + "".join(line(row) + "\n" for row in rows)


def line(row: Row) -> str:
    """Return the row of a table."""
    cells = (
        *(row.fault, f"{row.turns:,}", f"{row.found:,}", str(row.doubled), str(row.retried), f"{row.well_s:g}"),
        *(f"{row.before_ms:,.0f}", f"{row.during_ms:,.0f}", row.remark),
    )
    return "| " + " | ".join(cells) + " |"
