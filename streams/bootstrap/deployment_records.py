"""The records that a worker agrees on with its deployment before it serves.

These are release, settings, setup, and the embedder of `general`.

Enters: the settings of this worker, and the topic `service`. Leaves: the deployment's record, with new entries; or the
end of the process, with the reason. Guaranteed: a worker of a refused release writes nothing.
"""

import asyncio
import hashlib
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import reduce
from typing import Any, NoReturn

import structlog

from agents.ports.models import Embedders
from agents.rules.cues.mode_taxonomy import ModeTaxonomy
from schemas.failures import Rejected
from schemas.internal.service import (
    GENERAL_EMBEDDER_KEY,
    MODEL_KEY,
    RELEASE_KEY,
    SERVICE_KEY,
    SETUP_KEY,
    SPACE_KEY,
    GeneralEmbedder,
    ModelRecord,
    Provider,
    Release,
    ServiceRecord,
    Setup,
    SpaceRecord,
    Successor,
    TaxonomyTables,
)
from schemas.messages.decoding import decode
from schemas.state.modes import (
    GENERAL,
    GENERAL_MODE,
    EmbedderDescription,
    Fingerprint,
    FormerEmbedder,
    ModeDeclarations,
    general_by,
)
from schemas.version import RELEASE
from streams.adapters.kafka.deployment_log import KafkaDeploymentLog, last_successor
from streams.bootstrap.data_directory import MIGRATE
from streams.bootstrap.worker_topics import CREATE_THEM, VALIDATES
from streams.channels import input_channels
from streams.deployment_log import DeploymentLog, agree, readable
from streams.flow.steps.embed import REMEMBERED_EVENTS
from streams.flow.steps.remember import MEMORY_EVENTS
from streams.flow.steps.step import LEARNED_EVENTS
from streams.settings import Settings
from streams.topics import topics_with_prefix

# Users that have not declared the mode `general` have it with the embedder in the deployment's record, which a worker's
# setting replaces: workers that start one after another without the setting agree.

SETTING = "MODESTREAM_GENERAL_EMBEDDER"

log = structlog.get_logger()


class GeneralMode:
    """Completes declarations with the deployment's `general`, once `agree` is done."""

    def __init__(self, wanted: str | None, embedders: Embedders) -> None:
        """`wanted` is the setting. Ends the process if it does not name an embedder."""
        self._embedders = embedders
        self._wanted = None if wanted is None else self._described(wanted, f"setting {SETTING}").name
        self._mode = GENERAL_MODE

    async def agree(self, records: DeploymentLog) -> None:
        """Take the recorded embedder, or record the setting's. Ends the process if this worker lacks it."""
        recorded = readable((await records.values()).get(GENERAL_EMBEDDER_KEY, ()), GeneralEmbedder)
        chosen = recorded[-1] if recorded else None
        before = GENERAL if chosen is None else chosen.embedder
        if self._wanted is not None and self._wanted != before:
            chosen = GeneralEmbedder(embedder=self._wanted, former=before)
            log.warning("general has another embedder: restart every worker", embedder=self._wanted, before=before)
            await records.write(GENERAL_EMBEDDER_KEY, chosen)
        if chosen is not None:
            embedder = self._described(chosen.embedder, f"the deployment's general embedder (see {SETTING})")
            # The former embedder; even without its model it has vectors, which are to be rebuilt.
            found = self._embedders.described(chosen.former)
            self._mode = general_by(
                embedder, FormerEmbedder(embedder=chosen.former, embedding_dim=0 if found is None else found.dim)
            )

    def complete(self, declared: ModeDeclarations) -> ModeDeclarations:
        """Return the declarations with the deployment's `general`."""
        if self._mode is GENERAL_MODE:
            return declared
        return declared.model_copy(update={"general": self._mode})

    def _described(self, name: str, where: str) -> EmbedderDescription:
        found = self._embedders.described(name)
        if found is None:
            sys.exit(f"{where}: {name!r} is neither a preset nor in MODESTREAM_EMBEDDERS: add it there, or set another")
        return found


# Guard a deployment's data against workers of a release that can't read it, or that writes unreadable data.
#
# Enters: the numbers of this release, and the record in the topic `service`. Leaves: a record of this release, if it is
# the highest so far; or the end of the process, with a code and what to do. Guaranteed: a refused worker has written
# nothing. A running worker of the last release continues, and its start is refused by this record only if `OWN.oldest`
# says so.

READS_FROM = max(1, RELEASE - 1)
"""The oldest release whose data this one reads: the one before; 1.0.0 has none."""

OWN = Release(number=RELEASE, oldest=READS_FROM)
"""This release. `oldest` is the first that can read its writes, by default the one before: workers are replaced singly.
"""


async def agree_on_release(records: DeploymentLog, own: Release = OWN, reads_from: int = READS_FROM) -> Release:
    """Return the deployment's numbers from now on. Ends the process if this release may not join it."""

    def merge(releases: Sequence[Release]) -> Release:
        _refuse_unreadable(releases, own, reads_from)
        return _highest([*releases, own])

    return await agree(records, RELEASE_KEY, own, merge)


async def check_release(records: DeploymentLog) -> None:
    """End the process if this release may not join the deployment; writes nothing."""
    if recorded := readable((await records.values()).get(RELEASE_KEY, ()), Release):
        _refuse_unreadable(recorded, OWN, READS_FROM)


# Record with what a deployment makes its answers, and refuse workers that would answer with other tables.
#
# Enters: a worker's settings and tables of interaction modes, and the topic `service`. Leaves: the record `setup`, and
# one for each vector space that memories are in; or the end of the process, with both versions and the way out.
# Guaranteed: of workers with different tables that start at once, those of one file go on.

MAX_SPACES = 1000
"""Spaces that are recorded: users choose prefixes of passages, and with each its space."""


def setup_of(settings: Settings, taxonomy: ModeTaxonomy) -> Setup:
    providers = {
        name: Provider(model=profile.model, roles=profile.roles) for name, profile in settings.llm_profiles.items()
    }
    categories = settings.categories.model_dump_json()
    return Setup(
        vector_index=settings.vector_index_kind,
        providers=providers,
        taxonomy=TaxonomyTables(version=taxonomy.version, digest=taxonomy.digest, replaces=taxonomy.replaces),
        categories=hashlib.sha256(categories.encode()).hexdigest()[:12] if settings.categories.root else None,
    )


async def agree_on_setup(own: Setup, records: DeploymentLog) -> Setup:
    """Return the setup that counts from now on, the worker's own. Ends the process where its tables may not count."""

    def merge(setups: Sequence[Setup]) -> Setup:
        return reduce(lambda last, next_: next_ if next_.taxonomy.may_follow(last.taxonomy) else last, [*setups, own])

    agreed = await agree(records, SETUP_KEY, own, merge)
    there, here = agreed.taxonomy, own.taxonomy
    if not there.is_same(here):
        made = f"setting MODESTREAM_TAXONOMY: the deployment of {records.topic} has the tables {_tables(there)}"
        replaces = f'"replaces": ["{there.version}"]'
        way_out = f"give this worker their file; or to change the tables of the deployment, add {replaces} to its own"
        if there.version == here.version:
            way_out = "give this worker their file; or give its own another `version`, and name theirs in `replaces`"
        sys.exit(f"{made}, and this worker has {_tables(here)}: {way_out}")
    return agreed


class RecordedSpaces:
    """The vector spaces that memories are in, by the digests that their records name."""

    def __init__(self, records: DeploymentLog) -> None:
        self._records = records
        self._embedders: dict[str, str] = {}
        self._new: asyncio.Queue[SpaceRecord] = asyncio.Queue()

    async def read(self) -> None:
        for key, values in (await self._records.values()).items():
            if key.startswith((SPACE_KEY, MODEL_KEY)):
                kind: Any = SpaceRecord if key.startswith(SPACE_KEY) else ModelRecord
                self._embedders |= {record.space: record.embedder for record in readable(values, kind)}

    def note(self, fingerprint: Fingerprint) -> None:
        if fingerprint.digest in self._embedders or len(self._embedders) >= MAX_SPACES:
            return
        self._embedders[fingerprint.digest] = fingerprint.embedder
        self._new.put_nowait(
            SpaceRecord(
                space=fingerprint.digest,
                embedder=fingerprint.embedder,
                dim=fingerprint.dim,
                precision=fingerprint.precision,
            )
        )

    async def run(self) -> None:
        while True:
            record = await self._new.get()
            await agree(self._records, record.key, record)

    def names(self) -> Mapping[str, str]:
        """Return the embedders by the digests of their spaces."""
        return dict(sorted(self._embedders.items()))


# Guard a deployment's data against other settings than its original ones.
#
# Enters: a worker's settings, and the compacted topic `service`. Leaves: the deployment's record, written at the first
# start; or the end of the process, with both values and the way out, also for a replaced deployment. Guaranteed: if
# several workers start first at once, with different settings, one worker's settings apply to all.

REFUSALS = {
    "scope_fields": "setting MODESTREAM_SCOPE_MODEL: {deployment} was created with scopes of {made}, not {own}",
    "boundary": "setting MODESTREAM_SCOPE_MODEL: {deployment} was created with the boundary {made}, not {own}",
    "partitions": "setting MODESTREAM_PARTITIONS: {deployment} was created with {made} partitions, not {own}",
    "topic_prefix": "setting MODESTREAM_TOPIC_PREFIX: {deployment} was created with the prefix {made}, not {own}",
    "schemas": "{deployment} was written by a later release: its topics hold {made}, and this release reads {own}",
}
"""Why a worker does not start, by field of the record."""


def service_record(settings: Settings) -> ServiceRecord:
    inputs = input_channels(topics_with_prefix(settings.topic_prefix), settings.scope_model)
    # Kinds of questions may come and go: they are not stored.
    kept = (inputs.turns, inputs.commands, inputs.triggers, inputs.changes, inputs.jobs)
    kinds = (kind for channel in kept for kind in channel.kinds)
    schemas = (*kinds, *MEMORY_EVENTS, *REMEMBERED_EVENTS, *LEARNED_EVENTS)
    return ServiceRecord.of(settings.scope_model, settings.partitions, settings.topic_prefix, schemas)


async def agree_on_service(own: ServiceRecord, records: DeploymentLog) -> ServiceRecord:
    """Return the deployment's record; write `own` without one. Ends the process if `own` contradicts it."""
    refuse_replaced(records.topic, last_successor(await records.values()))

    def merge(services: Sequence[ServiceRecord]) -> ServiceRecord:
        # The first record counts, with the schemas of all, and those of a worker that may join.
        made = services[0].with_schemas(kind for service in services for kind in service.schemas)
        return made if made.conflicts(own) else made.with_schemas(own.schemas)

    def read(values: Iterable[bytes], _kind: type[ServiceRecord]) -> list[ServiceRecord]:
        try:
            return [decode(value, {"service.v1": ServiceRecord}) for value in values]
        except Rejected as problem:
            sys.exit(f"{records.topic} has a record that this release can't read, start a later one: {problem}")

    agreed = await agree(records, SERVICE_KEY, own, merge, read)
    if conflicts := agreed.conflicts(own):
        reasons = [
            REFUSALS[name].format(
                deployment=f"the deployment of {records.topic}",
                made=_text(getattr(agreed, name)),
                own=_text(getattr(own, name)),
            )
            for name in conflicts
        ]
        sys.exit("\n".join([*reasons, MIGRATE]))
    return agreed


def refuse_replaced(topic: str, successor: Successor | None) -> None:
    """End the process of a deployment whose topics were deleted: it would serve again, without memories."""
    if successor is not None and successor.state == "dropped":
        at = f" on {successor.broker}" if successor.broker else ""
        sys.exit(f"the deployment of {topic} was replaced: set MODESTREAM_TOPIC_PREFIX={successor.topic_prefix}{at}")


async def agree_on_records(
    settings: Settings, log: KafkaDeploymentLog, created: Collection[str], general: GeneralMode, setup: Setup
) -> ServiceRecord:
    """Return the deployment's record; `created` names the topics that this worker has just created.

    `setup` is the worker's own.
    """
    log.is_new = log.topic in created
    if settings.provision == "validate" and SERVICE_KEY not in await log.values():
        sys.exit(f"{VALIDATES}: {log.topic} has no record of a deployment; {CREATE_THEM}")
    # Before any write: the kinds of records of this release would end older releases.
    await check_release(log)
    agreed = await agree_on_service(service_record(settings), log)
    await agree_on_release(log)
    await agree_on_setup(setup, log)
    await general.agree(log)
    return agreed


def _text(value: Any) -> str:
    return ", ".join(value) if isinstance(value, tuple) else str(value)


def _tables(tables: TaxonomyTables) -> str:
    return f"{tables.version!r} (digest {tables.digest})"


def _refuse_unreadable(releases: Sequence[Release], own: Release, reads_from: int) -> None:
    made = _highest(releases)
    if own.number < made.oldest:
        writer = f"was written by release {made.number}, which takes workers from {made.oldest} on"
        _refuse("release_too_old", own, writer, made.oldest)
    if made.number < reads_from:
        reads = f"was last written by release {made.number}, and this one reads data from {reads_from} on"
        _refuse("data_too_old", own, reads, reads_from, f"once, and upgrade to {own.number} from there")


def _highest(releases: Sequence[Release]) -> Release:
    return Release(
        number=max(release.number for release in releases), oldest=max(release.oldest for release in releases)
    )


def _refuse(code: str, own: Release, why: str, needed: int, then: str = "or a later one") -> NoReturn:
    sys.exit(f"{code}: this worker is of release {own.number}; the deployment {why}: start release {needed} {then}")
