"""Record with what a deployment makes its answers, and refuse workers that would answer with other tables.

Enters: a worker's settings and tables of interaction modes, and the topic `service`. Leaves: the record `setup`, and
one for each vector space that memories are in; or the end of the process, with both versions and the way out.
Guaranteed: of workers with different tables that start at once, those of one file go on.
"""

import asyncio
import hashlib
import sys
from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Any

from agents.rules.cues.mode_taxonomy import ModeTaxonomy
from schemas.internal.service import (
    MODEL_KEY,
    SETUP_KEY,
    SPACE_KEY,
    ModelRecord,
    Provider,
    Setup,
    SpaceRecord,
    TaxonomyTables,
)
from schemas.state.modes import Fingerprint
from streams.deployment_log import DeploymentLog, agree, readable
from streams.settings import Settings

MAX_SPACES = 1000
"""Spaces that are recorded: users choose prefixes of passages, and with each its space."""


def setup_of(settings: Settings, taxonomy: ModeTaxonomy) -> Setup:
    """Return the setup of a worker."""
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
        made = f"setting MODESTREAM_TAXONOMY: the deployment of {records.topic} has the tables {_shown(there)}"
        replaces = f'"replaces": ["{there.version}"]'
        way_out = f"give this worker their file; or to change the tables of the deployment, add {replaces} to its own"
        if there.version == here.version:
            way_out = "give this worker their file; or give its own another `version`, and name theirs in `replaces`"
        sys.exit(f"{made}, and this worker has {_shown(here)}: {way_out}")
    return agreed


def _shown(tables: TaxonomyTables) -> str:
    return f"{tables.version!r} (digest {tables.digest})"


class RecordedSpaces:
    """The vector spaces that memories are in, by the digests that their records name."""

    def __init__(self, records: DeploymentLog) -> None:
        self._records = records
        self._embedders: dict[str, str] = {}
        self._new: asyncio.Queue[SpaceRecord] = asyncio.Queue()

    async def read(self) -> None:
        """Read what is recorded."""
        for key, values in (await self._records.values()).items():
            if key.startswith((SPACE_KEY, MODEL_KEY)):
                kind: Any = SpaceRecord if key.startswith(SPACE_KEY) else ModelRecord
                self._embedders |= {record.space: record.embedder for record in readable(values, kind)}

    def note(self, fingerprint: Fingerprint) -> None:
        """Have a space recorded, unless it is."""
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
        """Record new spaces until cancelled."""
        while True:
            record = await self._new.get()
            await agree(self._records, record.key, record)

    def names(self) -> Mapping[str, str]:
        """Return the embedders by the digests of their spaces."""
        return dict(sorted(self._embedders.items()))
