"""Invariants of memories after any actions: each check yields its violations as texts.

Enters: an idle in-memory pipeline and the runner of its actions. Neither is changed.
"""

from collections import Counter
from collections.abc import Iterable, Iterator

import numpy as np
from modestream_client.hits import Evidence

from agents.rules.memory.visibility import mode_visibility
from schemas.state.memories import Memory, all_index_names
from schemas.state.modes import VectorSpace
from streams.adapters.lexical.sqlite_index import SqliteLexicalIndex
from streams.wire.partitioning import partition_of
from tests.worlds.in_memory_pipeline import InMemoryPipeline
from tests.worlds.in_memory_requests import Json
from tests.worlds.user_actions import BYSTANDER, USER, ActionRunner


async def find_faults(runner: ActionRunner, pipeline: InMemoryPipeline, words: SqliteLexicalIndex) -> list[str]:
    known = {memory.memory_id: memory for memory in runner.memories()}
    found = [*check_turns(runner, known), *check_evidence(known), *check_chains(known), *check_items(known)]
    found += check_words(pipeline, words)
    found += await check_vectors(pipeline)
    found += check_visibility(pipeline, known)
    shown = await show_everything(pipeline, runner)
    found += check_removed_texts(runner, known, pipeline, words, shown)
    return found + list(check_shown(shown, known))


def check_turns(runner: ActionRunner, known: dict[str, Memory]) -> Iterator[str]:
    """Every turn that was not forgotten has its last text, and there are no others."""
    there = {memory.memory_id: str(memory.metadata["mark"]) for memory in known.values() if memory.origin == "said"}
    if there != runner.current_marks:
        yield f"turns are {there}, expected {runner.current_marks}"


def check_evidence(known: dict[str, Memory]) -> Iterator[str]:
    """Evidence of derived memories is a span in an existing turn; an item has the text of a span."""
    for memory in known.values():
        if memory.origin == "said":
            continue
        if not memory.evidence:
            yield f"{memory.text!r} has no evidence"
        spans = [(span, _text(span, known)) for span in memory.evidence]
        for span, text in spans:
            if text is None or not 0 <= span.start < span.end <= len(text):
                yield f"{memory.text!r} has invalid evidence: {span}"
        if memory.origin == "extracted" and not any(text and text[s.start : s.end] == memory.text for s, text in spans):
            yield f"{memory.text!r} differs from its evidence"


def check_chains(known: dict[str, Memory]) -> Iterator[str]:
    """Every chain of superseding memories ends in a current one."""
    for memory in known.values():
        seen: list[str] = []
        at: Memory | None = memory
        while at is not None and at.superseded_by is not None and at.memory_id not in seen:
            seen.append(at.memory_id)
            at = known.get(at.superseded_by)
        if at is None or at.superseded_by is not None:
            yield f"the chain of {memory.origin} {memory.text!r} does not end: {seen}"


def check_items(known: dict[str, Memory]) -> Iterator[str]:
    """A turn lists exactly the items whose evidence it is."""
    named = {(turn.memory_id, item) for turn in known.values() for item in turn.items}
    items = [memory for memory in known.values() if memory.origin == "extracted"]
    rests = {(span.memory_id, item.memory_id) for item in items for span in item.evidence}
    for turn, item in named ^ rests:
        text = known[item].text if item in known else item
        yield f"turn {turn} and item {text!r} agree one way only: {'named' if (turn, item) in named else 'rests'}"


def check_words(pipeline: InMemoryPipeline, words: SqliteLexicalIndex) -> Iterator[str]:
    """Every index of the lexical store has its records with mode, status and whether they are current."""
    records = list(pipeline.memories.all())
    for index_name in (index_name for boundary in (USER, BYSTANDER) for index_name in all_index_names(boundary)):
        there = [record for record in records if record.index_name == index_name]
        columns_by_partition = [words.memory_columns(partition, index_name) for partition in range(pipeline.partitions)]
        live = [
            (memory_columns.id_of[n], bool(memory_columns.columns.superseded[n]))
            for memory_columns in columns_by_partition
            for n in np.flatnonzero(memory_columns.columns.live).tolist()
        ]
        expected = [(memory.memory_id, memory.superseded_by is not None) for memory in there]
        if sorted(live) != sorted(expected):
            yield f"the words of {index_name} have {set(live) - set(expected)} and lack {set(expected) - set(live)}"
        counted: Counter[tuple[str, str]] = Counter()
        for partition in range(pipeline.partitions):
            for mode, statuses in words.counts(partition, index_name).items():
                counted.update({(mode, status): number for status, number in statuses.items()})
        if +counted != Counter((memory.mode, memory.embedding.status) for memory in there):
            yield f"the words of {index_name} count {+counted}"


async def check_vectors(pipeline: InMemoryPipeline) -> list[str]:
    """Every searchable memory has the vector of its current text in its mode's space, and there are no others."""
    records = list(pipeline.memories.all())
    found = [
        f"{record.text!r} is {record.embedding.status}"
        for record in records
        if record.embedding.status != _due_status(record)
    ]
    stored: set[tuple[str, str, str]] = set()
    for name, fingerprint in (await pipeline.index.spaces()).items():
        space = VectorSpace(name.removesuffix(f"-{fingerprint.digest}"), fingerprint)
        there = await pipeline.index.hashes(space, [record.memory_id for record in records])
        stored |= {(memory_id, space.mode, content) for memory_id, content in there.items()}
        count = sum([await pipeline.index.count(space, partition) for partition in range(pipeline.partitions)])
        if count != len(there):
            found.append(f"{count - len(there)} vectors in {space.mode} have no memory")
    expected = {
        (record.memory_id, record.mode, record.content_hash) for record in records if record.visibility.searchable
    }
    return found + (
        [] if stored == expected else [f"vectors too many {stored - expected}, missing {expected - stored}"]
    )


def _due_status(memory: Memory) -> str:
    return "ready" if memory.visibility.searchable else "not_applicable"


def check_visibility(pipeline: InMemoryPipeline, known: dict[str, Memory]) -> Iterator[str]:
    """A memory's own filters and its mode's hold for it; an item has those of its turns, a summary all of them."""
    for memory in known.values():
        declared = pipeline.modes.get(partition_of(USER.encode(), pipeline.partitions), USER)
        expected = memory.own_visibility.limited_by(mode_visibility(memory, declared))
        if memory.visibility != expected:
            yield f"{memory.origin} {memory.text!r} has {memory.visibility!r}, expected {expected!r}"
        turns = [known[span.memory_id] for span in memory.evidence if span.memory_id in known]
        if memory.origin == "extracted" and any(turn.visibility != memory.own_visibility for turn in turns):
            yield f"item {memory.text!r} has other filters than its turns"
        if memory.origin == "distilled" and any(
            turn.own_visibility.private > memory.visibility.private for turn in turns
        ):
            yield f"summary {memory.text!r} has the text of a private turn"


def check_removed_texts(
    runner: ActionRunner, known: dict[str, Memory], pipeline: InMemoryPipeline, words: SqliteLexicalIndex, shown: Json
) -> Iterator[str]:
    """Forgotten and replaced texts are in no record, index or reply."""
    over = runner.marks - set(runner.current_marks.values())
    places = {
        "records": [each.model_dump_json() for each in known.values()],
        "claims": [*map(str, pipeline.tables.rows("claims").values())],
        "intentions": [*map(str, pipeline.tables.rows("intentions").values())],
        "categories": [*map(str, pipeline.tables.rows("categories").values())],
        "answers": [str(shown)],
    }
    for mark in sorted(over):
        yield from (f"{mark} is in {place}" for place, texts in places.items() if any(mark in text for text in texts))
        if any(_occurs(mark, words, pipeline.partitions)):
            yield f"{mark} is in the words"


async def show_everything(pipeline: InMemoryPipeline, runner: ActionRunner) -> Json:
    everywhere = {"scope": {"user_id": USER, "project_id": "*"}, "mode": "*", "top_k": 100}
    shown: Json = {"retrieved": [], "projects": []}
    for types in (None, ["semantic", "procedural", "state_object", "document"]):
        for depth in ("items", "auto"):
            request = {"schema": "retrieve.v1", "query": ASKED, "types": types, "depth": depth, **everywhere}
            shown["retrieved"].append((await pipeline.ask(pipeline.names.retrieve, request))["result"])
    for project in runner.projects:
        intention = await pipeline.command("get_intention", USER, project)
        categories = await pipeline.command("list_categories", USER, project, include_summary=True, include_items=True)
        shown["projects"].append([intention["result"], categories["result"]])
    return shown


def check_shown(shown: Json, known: dict[str, Memory]) -> Iterator[str]:
    """Replies contain only current memories, and evidence in them exists."""
    for result in shown["retrieved"]:
        for hit in result["hits"]:
            for each in (hit, *hit.get("items", ())):
                memory = known.get(each["memory_id"])
                is_found = memory is not None and memory.visibility.searchable and memory.superseded_by is None
                if memory is None or not is_found or memory.text != each["text"]:
                    yield f"an outdated hit: {each['text']!r}"
    for intention, categories in shown["projects"]:
        entries = [
            entry for part in intention.values() if isinstance(part, list) for entry in part if isinstance(entry, dict)
        ]
        rested = [span["memory_id"] for entry in entries for span in entry["evidence"]]
        listed = [item["memory_id"] for category in categories["categories"] for item in category.get("items", ())]
        for memory_id in (*rested, *listed):
            memory = known.get(memory_id)
            if memory is None or (memory_id in listed and memory.superseded_by is not None):
                yield f"shown, but missing: {memory_id}"
            elif not memory.visibility.searchable:
                yield f"shown, but not searchable: {memory.text!r}"


ASKED = "the deploy target, the login, the beta, the tomatoes in the greenhouse, where do I live, soup and notes"


def _text(span: Evidence, known: dict[str, Memory]) -> str | None:
    turn = known.get(span.memory_id or "")
    if turn is None or turn.origin != "said":
        return None
    if span.resource is None:
        return turn.text
    return next((resource.text for resource in turn.resources if resource.uri == span.resource), None)


def _occurs(mark: str, words: SqliteLexicalIndex, partitions: int) -> Iterable[bool]:
    for partition in range(partitions):
        for index_name in all_index_names(USER):
            yield any(len(posting.numbers) for posting in words.postings(partition, index_name, [mark], fuzzy=False))
