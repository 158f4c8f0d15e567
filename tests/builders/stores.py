"""The stores of a worker over fakes, for tests of agents."""

from typing import NoReturn

from agents.memory.remember import Remember
from agents.modes.vector_spaces import VectorSpaces
from agents.ports.models import Embedders
from streams.adapters.lexical.sqlite_index import SqliteLexicalIndex
from streams.flow.stores import LexicalStore, MemoryStore, PartitionStores, Stores
from streams.observability.metrics import Meters
from streams.partition.commit import PartitionCommits
from tests.fakes.tables.categories import FakeCategories
from tests.fakes.tables.claims import FakeClaims
from tests.fakes.tables.files import FakeFiles
from tests.fakes.tables.intentions import FakeIntentions
from tests.fakes.tables.interactions import FakeInteractions
from tests.fakes.tables.memories import FakeMemories
from tests.fakes.tables.modes import FakeModes


def fake_stores(
    words: LexicalStore,
    memories: MemoryStore | None = None,
    modes: FakeModes | None = None,
    claims: FakeClaims | None = None,
    intentions: FakeIntentions | None = None,
    categories: FakeCategories | None = None,
    interactions: FakeInteractions | None = None,
    files: FakeFiles | None = None,
) -> Stores:
    """Return stores over fakes, but for the lexical index and for those that are given."""
    return Stores(
        memories=memories or FakeMemories(),
        modes=modes or FakeModes(),
        claims=claims or FakeClaims(),
        intentions=intentions or FakeIntentions(),
        categories=categories or FakeCategories(),
        interactions=interactions or FakeInteractions(),
        files=files or FakeFiles(),
        words=words,
    )


def commits_over(words: SqliteLexicalIndex, meters: Meters | None = None) -> PartitionCommits:
    async def refuse(*_row: object) -> NoReturn:
        raise NotImplementedError

    return PartitionCommits(
        words.databases, meters or Meters(), memories="", send_row=refuse, flush_events=lambda: None, interval_s=0.0
    )


def remember_over(stores: PartitionStores, embedders: Embedders, *, asks_model: bool = False) -> Remember:
    spaces = VectorSpaces(stores.modes, embedders)
    return Remember(
        stores.memories,
        stores.words,
        stores.modes,
        spaces,
        stores.claims,
        stores.interactions,
        stores.categories,
        stores.files,
        asks_model=asks_model,
    )
