"""What must hold of memories whatever happened to them: each check gives what is wrong, in words, or nothing.

Enters: a map in memory at rest, and the diary of what happened to it. Nothing is changed.
"""

from collections import Counter
from collections.abc import Iterable, Iterator

import numpy as np

from schemas.state.memories import Evidence, Memory, index_names
from schemas.state.modes import VectorSpace
from streams.adapters.lexical.sqlite_index import SqliteLexicalIndex
from tests.worlds.happenings import BYSTANDER, USER, Diary
from tests.worlds.in_memory_pipeline import InMemoryPipeline, Json


async def wrong(diary: Diary, pipeline: InMemoryPipeline, words: SqliteLexicalIndex) -> list[str]:
    """Everything that is wrong."""
    known = {one.memory_id: one for one in diary.memories()}
    found = [*turns_as_said(diary, known), *evidence(known), *chains(known), *items_and_turns(known)]
    found += words_and_records(pipeline, words)
    found += await vectors_and_records(pipeline)
    shown = await everything_shown(pipeline, diary)
    found += kept_texts(diary, known, pipeline, words, shown)
    return found + list(served(shown, known))


def turns_as_said(diary: Diary, known: dict[str, Memory]) -> Iterator[str]:
    """Every turn that was said and not forgotten stands, as it was said last, and no other."""
    there = {one.memory_id: str(one.metadata["mark"]) for one in known.values() if one.origin == "said"}
    if there != diary.stands:
        yield f"turns stand as {there}, and were said as {diary.stands}"


def evidence(known: dict[str, Memory]) -> Iterator[str]:
    """What was derived rests on turns that are there, on spans inside their texts; an item says what stands there."""
    for one in known.values():
        if one.origin == "said":
            continue
        if not one.evidence:
            yield f"{one.text!r} rests on nothing"
        spans = [(span, _text(span, known)) for span in one.evidence]
        for span, text in spans:
            if text is None or not 0 <= span.start < span.end <= len(text):
                yield f"{one.text!r} has evidence that is not there: {span}"
        if one.origin == "extracted" and not any(text and text[s.start : s.end] == one.text for s, text in spans):
            yield f"{one.text!r} is not what its evidence says"


def chains(known: dict[str, Memory]) -> Iterator[str]:
    """Every chain of what took another's place ends in a memory that stands."""
    for one in known.values():
        seen: list[str] = []
        at: Memory | None = one
        while at is not None and at.superseded_by is not None and at.memory_id not in seen:
            seen.append(at.memory_id)
            at = known.get(at.superseded_by)
        if at is None or at.superseded_by is not None:
            yield f"the chain of {one.origin} {one.text!r} does not end: {seen}"


def items_and_turns(known: dict[str, Memory]) -> Iterator[str]:
    """A turn names the items that rest on it, and these alone."""
    named = {(turn.memory_id, item) for turn in known.values() for item in turn.items}
    items = [one for one in known.values() if one.origin == "extracted"]
    rests = {(span.memory_id, item.memory_id) for item in items for span in item.evidence}
    for turn, item in named ^ rests:
        text = known[item].text if item in known else item
        yield f"turn {turn} and item {text!r} agree one way only: {'named' if (turn, item) in named else 'rests'}"


def words_and_records(pipeline: InMemoryPipeline, words: SqliteLexicalIndex) -> Iterator[str]:
    """Every shelf of the word index has the records of that shelf, with their mode, status, and whether they stand."""
    records = list(pipeline.memories.all())
    for shelf in (shelf for boundary in (USER, BYSTANDER) for shelf in index_names(boundary)):
        there = [one for one in records if one.index_name == shelf]
        rosters = [words.memory_columns(partition, shelf) for partition in range(pipeline.partitions)]
        live = [
            (roster.id_of[n], bool(roster.columns.superseded[n]))
            for roster in rosters
            for n in np.flatnonzero(roster.columns.live).tolist()
        ]
        wanted = [(one.memory_id, one.superseded_by is not None) for one in there]
        if sorted(live) != sorted(wanted):
            yield f"the words of {shelf} have {set(live) - set(wanted)} and lack {set(wanted) - set(live)}"
        counted: Counter[tuple[str, str]] = Counter()
        for partition in range(pipeline.partitions):
            for mode, statuses in words.counts(partition, shelf).items():
                counted.update({(mode, status): number for status, number in statuses.items()})
        if +counted != Counter((one.mode, one.embedding.status) for one in there):
            yield f"the words of {shelf} count {+counted}"


async def vectors_and_records(pipeline: InMemoryPipeline) -> list[str]:
    """Every memory has the vector of what it says now, in its mode's space, and there are no others."""
    records = list(pipeline.memories.all())
    found = [f"{one.text!r} is {one.embedding.status}" for one in records if one.embedding.status != "ready"]
    lying: set[tuple[str, str, str]] = set()
    for name, fingerprint in (await pipeline.index.spaces()).items():
        space = VectorSpace(name.removesuffix(f"-{fingerprint.digest}"), fingerprint)
        there = await pipeline.index.hashes(space, [one.memory_id for one in records])
        lying |= {(memory_id, space.mode, content) for memory_id, content in there.items()}
        count = sum([await pipeline.index.count(space, partition) for partition in range(pipeline.partitions)])
        if count != len(there):
            found.append(f"{count - len(there)} vectors in {space.mode} are nobody's")
    wanted = {(one.memory_id, one.mode, one.content_hash) for one in records}
    return found + ([] if lying == wanted else [f"vectors too many {lying - wanted}, missing {wanted - lying}"])


def kept_texts(
    diary: Diary, known: dict[str, Memory], pipeline: InMemoryPipeline, words: SqliteLexicalIndex, shown: Json
) -> Iterator[str]:
    """Nothing that was forgotten or said otherwise since is in any record, in the words, or in anything shown."""
    over = diary.marks - set(diary.stands.values())
    places = {
        "records": [one.model_dump_json() for one in known.values()],
        "claims": [*map(str, pipeline.claims.kept.values())],
        "intentions": [*map(str, pipeline.intentions._kept.values())],
        "categories": [*map(str, pipeline.categories._kept.values())],
        "answers": [str(shown)],
    }
    for mark in sorted(over):
        yield from (f"{mark} is in {place}" for place, texts in places.items() if any(mark in one for one in texts))
        if any(_occurs(mark, words, pipeline.partitions)):
            yield f"{mark} is in the words"


async def everything_shown(pipeline: InMemoryPipeline, diary: Diary) -> Json:
    """The result of a request for everything."""
    everywhere = {"scope": {"user_id": USER, "project_id": "*"}, "mode": "*", "top_k": 100}
    shown: Json = {"retrieved": [], "projects": []}
    for types in (None, ["semantic", "procedural", "state_object", "document"]):
        for depth in ("items", "auto"):
            request = {"schema": "retrieve.v1", "query": ASKED, "types": types, "depth": depth, **everywhere}
            shown["retrieved"].append((await pipeline.ask(pipeline.names.retrieve, request))["result"])
    for project in diary.projects:
        intention = await pipeline.command("get_intention", USER, project)
        categories = await pipeline.command("list_categories", USER, project, include_summary=True, include_items=True)
        shown["projects"].append([intention["result"], categories["result"]])
    return shown


def served(shown: Json, known: dict[str, Memory]) -> Iterator[str]:
    """What is served is there, and stands; what rests on turns names those that are there."""
    for result in shown["retrieved"]:
        for hit in result["hits"]:
            for one in (hit, *hit.get("items", ())):
                memory = known.get(one["memory_id"])
                if memory is None or memory.superseded_by is not None or memory.text != one["text"]:
                    yield f"a hit that is not so: {one['text']!r}"
    for intention, categories in shown["projects"]:
        entries = [
            one for part in intention.values() if isinstance(part, list) for one in part if isinstance(one, dict)
        ]
        rested = [span["memory_id"] for one in entries for span in one["evidence"]]
        listed = [item["memory_id"] for one in categories["categories"] for item in one.get("items", ())]
        for memory_id in (*rested, *listed):
            memory = known.get(memory_id)
            if memory is None or (memory_id in listed and memory.superseded_by is not None):
                yield f"shown, and not there: {memory_id}"


ASKED = "the deploy target, the login, the beta, the tomatoes in the greenhouse, where do I live, soup and notes"


def _text(span: Evidence, known: dict[str, Memory]) -> str | None:
    turn = known.get(span.memory_id or "")
    if turn is None or turn.origin != "said":
        return None
    if span.resource is None:
        return turn.text
    return next((one.text for one in turn.resources if one.uri == span.resource), None)


def _occurs(mark: str, words: SqliteLexicalIndex, partitions: int) -> Iterable[bool]:
    for partition in range(partitions):
        for shelf in index_names(USER):
            yield any(len(one.numbers) for one in words.postings(partition, shelf, [mark], fuzzy=False))
