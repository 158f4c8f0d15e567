"""`health` of a boundary and of the deployment."""

from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from agents.commands.health import FileCounts, Health
from agents.modes.vector_spaces import VectorSpaces
from agents.rules.index.lexical_document import LexicalDocument
from schemas.internal.job_history import JobHistory, StoredJob
from schemas.messages.commands import Command
from schemas.messages.replies import SuccessReply
from schemas.scopes import Scope
from schemas.state.memories import Embedding
from schemas.state.modes import GENERAL, Mode, UsageHistory
from streams.adapters.lexical.sqlite_index import SqliteLexicalIndex
from streams.flow.job_log import JobLog
from streams.observability.metrics import Usage
from tests.builders.memories import embedded_in, made
from tests.builders.stores import fake_stores
from tests.fakes.clock import FakeClock
from tests.fakes.embedders import FakeEmbedders
from tests.fakes.tables.json_table import FakeJsonTable
from tests.fakes.tables.modes import FakeModes
from tests.fakes.vector_index import FakeIndex

CODE = Mode(name="code", embedder="tiny32", embedding_dim=32)
HEALTH = Command(command="health", scope=Scope(user_id="ana"))


class HealthHarness:
    """`Health` over one boundary's modes and memories."""

    def __init__(self, words: SqliteLexicalIndex) -> None:
        self.words, self.modes, self.embedders, self.index = words, FakeModes(), FakeEmbedders(), FakeIndex()
        stores = fake_stores(words, modes=self.modes).at(0)
        self.spaces = VectorSpaces(stores.modes, self.embedders)
        self.jobs = JobLog(FakeJsonTable(JobHistory))
        deployment = {"lag": {"memory.turns": 3}, "language_model": "none"}
        self.usage = Usage(CollectorRegistry())
        self.history = UsageHistory()
        self.health = Health(
            stores.words,
            stores.modes,
            self.spaces,
            self.index,
            self.jobs.at(0),
            lambda: deployment,
            self.usage,
            FileCounts(stores.files, stores.memories),
            lambda _boundary: self.history,
            FakeClock(),
        )

    def remember(self, *statuses: str, **fields: Any) -> None:
        first = fields.pop("number", 0)
        for number, status in enumerate(statuses, first):
            embedding = Embedding.model_validate({**embedded_in("s1").model_dump(), "status": status})
            self.words.put(0, LexicalDocument(made("a", number, embedding=embedding, **fields)))

    async def __call__(self) -> dict[str, Any]:
        return await self.health(HEALTH)


@pytest.fixture
def harness(words: SqliteLexicalIndex) -> HealthHarness:
    return HealthHarness(words)


async def test_memories_are_counted_by_mode_and_status(harness: HealthHarness) -> None:
    harness.modes.declare(CODE)
    harness.remember("pending", "ready", "ready", "stale", "failed")
    harness.remember("ready", mode="code", number=10)
    modes = (await harness())["modes"]
    counts = {"eligible": 5, "pending": 1, "ready": 2, "stale": 1, "failed": 1}
    assert {name: modes[GENERAL][name] for name in counts} == counts
    assert modes["code"]["eligible"] == 1
    assert modes["code"]["ready"] == 1


async def test_memory_that_needs_no_vector_is_not_eligible(harness: HealthHarness) -> None:
    harness.remember("not_applicable", "ready")
    general = (await harness())["modes"][GENERAL]
    assert general["eligible"] == 1
    assert general["ready"] == 1


async def test_each_boundary_counts_its_own(harness: HealthHarness) -> None:
    harness.modes.declare(CODE, boundary="ben")
    harness.remember("ready", user="ben")
    health = await harness()
    assert list(health["modes"]) == [GENERAL]
    assert health["modes"][GENERAL]["eligible"] == 0
    assert health["telemetry"]["modes_in_use"] == 0


async def test_limited_sender_sees_the_figures_of_its_projects(harness: HealthHarness) -> None:
    harness.modes.declare(CODE.model_copy(update={"project": "p2"}))
    harness.modes.put(0, "ana", harness.modes.get(0, "ana").model_copy(update={"corrections": 2}))
    harness.remember("ready", project="p1")
    harness.remember("ready", "failed", project="p2", number=10)
    limited = await harness.health(HEALTH.limited_to(("p1", "p3")))
    assert {name: mode["eligible"] for name, mode in limited["modes"].items()} == {GENERAL: 1}
    assert limited["telemetry"]["corrections"] == 0
    assert (await harness())["modes"][GENERAL]["eligible"] == 3


async def test_each_mode_shows_the_fingerprint_of_its_space(harness: HealthHarness) -> None:
    harness.modes.declare(CODE)
    modes = (await harness())["modes"]
    expected = {name: harness.spaces.of(made("a", mode=name))[1].fingerprint.digest for name in ("code", GENERAL)}
    assert {name: mode["fingerprint"] for name, mode in modes.items()} == expected
    assert {(mode["error"], mode["last_backfill"]) for mode in modes.values()} == {(None, None)}


async def test_mode_without_loaded_model_has_an_error_code(harness: HealthHarness) -> None:
    harness.modes.declare(CODE)
    harness.embedders.missing("tiny32")
    harness.remember("pending", mode="code")
    mode = (await harness())["modes"]["code"]
    assert mode["fingerprint"] is None
    assert mode["pending"] == 1
    assert mode["error"]["code"] == "unavailable"
    assert "tiny32" in mode["error"]["message"]


async def test_deleted_mode_is_shown_while_it_has_memories(harness: HealthHarness) -> None:
    harness.remember("pending", mode="gone")
    deleted = (await harness())["modes"]["gone"]
    assert deleted["eligible"] == 1
    assert deleted["fingerprint"] is None
    assert deleted["error"] is None


async def test_user_mode_is_listed_before_equally_named_project_modes(harness: HealthHarness) -> None:
    harness.modes.declare(CODE.model_copy(update={"embedder": "tiny48", "project": "p1"}), CODE)
    expected = harness.spaces.resolve(CODE)[1].fingerprint.digest
    assert (await harness())["modes"]["code"]["fingerprint"] == expected


async def test_mode_of_any_project_is_shown(harness: HealthHarness) -> None:
    harness.modes.declare(CODE.model_copy(update={"project": "p1"}))
    assert list((await harness())["modes"]) == ["code", GENERAL]


async def test_modes_in_use_are_those_with_memories(harness: HealthHarness) -> None:
    harness.modes.declare(CODE)
    assert (await harness())["telemetry"]["modes_in_use"] == 0
    harness.remember("ready", "pending")
    assert (await harness())["telemetry"]["modes_in_use"] == 1


async def test_corrections_are_reported_per_hundred_memories(harness: HealthHarness) -> None:
    harness.usage.retrieved("ana", "cross_mode")
    harness.usage.retrieved("ben", "hybrid")
    assert (await harness())["telemetry"]["corrections_per_hundred"] == 0
    harness.modes.put(0, "ana", harness.modes.get(0, "ana").model_copy(update={"corrections": 2}))
    assert (await harness())["telemetry"]["corrections_per_hundred"] == 0, "without memories there is no rate"
    harness.remember("ready", "ready", "pending")
    telemetry = (await harness())["telemetry"]
    assert telemetry["corrections"] == 2
    assert telemetry["corrections_per_hundred"] == 66.67
    assert telemetry["cross_mode_share"] == 0.5
    assert telemetry["user"]["questions"] == 1
    assert telemetry["worker"]["questions"] == 2


async def test_turns_are_counted_by_day_in_permitted_projects(harness: HealthHarness) -> None:
    harness.remember("ready", "ready", project="p1")
    harness.remember("ready", project="p2", number=10)
    periods = (await harness())["growth"]["periods"]
    assert sum(turns for _, turns in periods) == 3
    limited = await harness.health(HEALTH.limited_to(("p2",)))
    assert [turns for _, turns in limited["growth"]["periods"]] == [1]


async def test_ended_jobs_are_shown_with_counts_newest_first(harness: HealthHarness) -> None:
    results: list[dict[str, Any]] = [{"created": ["m1", "m2"], "run": "r"}, {"processed": 7, "diff": []}]
    for number, result in enumerate(results):
        job = StoredJob(job_id=f"backfill-0-{number}", project=f"p{number}", at_ms=0)
        harness.jobs.begin(0, "ana", job)
        harness.jobs.end(0, "ana", job.job_id, SuccessReply(result).encode())
    harness.jobs.begin(0, "ana", StoredJob(job_id="rebuild-0-9", project=None, at_ms=0))
    shown = (await harness())["last_jobs"]
    assert [(job["command"], job["state"], job["counts"]) for job in shown] == [
        ("backfill", "done", {"processed": 7}),
        ("backfill", "done", {"created": 2}),
    ]
    limited = await harness.health(HEALTH.limited_to(("p0",)))
    assert [job["job_id"] for job in limited["last_jobs"]] == ["backfill-0-0"]


async def test_health_describes_the_deployment(harness: HealthHarness) -> None:
    health = await harness()
    assert health["lag"] == {"memory.turns": 3}
    assert health["language_model"] == "none"
    assert health["vector_index"] == "ready"


async def test_index_outage_is_reported_with_its_reason_in_health(harness: HealthHarness) -> None:
    harness.remember("ready")
    harness.index.down()
    health = await harness()
    assert health["vector_index"] == "unavailable: the vector index is switched off"
    assert health["modes"][GENERAL]["ready"] == 1


def end_job(
    harness: HealthHarness, job_id: str, at_ms: int, result: dict[str, Any], project: str | None = None
) -> None:
    harness.jobs.begin(0, "ana", StoredJob(job_id=job_id, project=project, at_ms=at_ms))
    harness.jobs.end(0, "ana", job_id, SuccessReply(result).encode())


async def test_orphans_are_those_of_the_last_comparison_of_all_projects(harness: HealthHarness) -> None:
    end_job(harness, "verify-0-1", 1000, {"words_orphaned": 0, "vectors_orphaned": 5})
    end_job(harness, "verify-0-2", 2000, {"words_orphaned": 2, "vectors_orphaned": 3})
    end_job(harness, "verify-0-3", 3000, {"words_orphaned": 9, "vectors_orphaned": 9}, "p1")
    expected = {"words": 2, "vectors": 3, "by": "verify", "at": "1970-01-01T00:00:02Z"}
    assert (await harness())["orphans"] == expected


async def test_reconciled_vectors_are_no_orphans(harness: HealthHarness) -> None:
    end_job(harness, "verify-0-1", 1000, {"words_orphaned": 0, "vectors_orphaned": 5})
    end_job(harness, "reconcile-0-2", 2000, {"processed": 7, "orphans": 5})
    assert (await harness())["orphans"] == {
        "words": None,
        "vectors": 0,
        "by": "reconcile",
        "at": "1970-01-01T00:00:02Z",
    }


async def test_orphans_are_not_known_before_a_comparison(harness: HealthHarness) -> None:
    assert (await harness())["orphans"] is None
