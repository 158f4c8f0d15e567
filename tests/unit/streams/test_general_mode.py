"""Which embedder the deployment gives `general`: the setting's, else the recorded one, else the built-in one."""

import pytest

from schemas.internal.service import GENERAL_EMBEDDER_KEY, GeneralEmbedder
from schemas.state.modes import GENERAL, GENERAL_MODE, FormerEmbedder, Mode, ModeDeclarations
from streams.bootstrap.deployment_records import GeneralMode
from streams.deployment_log import readable
from tests.fakes.deployment_log import FakeDeploymentLog
from tests.fakes.embedders import FakeEmbedders


def empty_log() -> FakeDeploymentLog:
    return FakeDeploymentLog(GENERAL_EMBEDDER_KEY)


async def general_by_start(log: FakeDeploymentLog, wanted: str | None = None) -> Mode | None:
    """Return what users have that declare no `general`, after a worker's start."""
    general = GeneralMode(wanted, FakeEmbedders())
    await general.agree(log)
    return general.complete(ModeDeclarations()).find(GENERAL, None)


async def test_without_setting_and_record_it_is_the_built_in_one() -> None:
    log = empty_log()
    assert await general_by_start(log) == GENERAL_MODE
    assert log.written == []


async def test_setting_of_one_worker_is_that_of_all_later_starts() -> None:
    log = empty_log()
    for wanted in ("tiny48", "tiny48", None):
        general = await general_by_start(log, wanted)
        assert general is not None
        assert general.embedder == "tiny48"
        assert general.embedding_dim == 48
        assert general.former == FormerEmbedder(embedder=GENERAL, embedding_dim=384)
    assert readable(log.written, GeneralEmbedder) == [GeneralEmbedder(embedder="tiny48")]
    for wanted in ("all-MiniLM-L6-v2", None):
        back = await general_by_start(log, wanted)
        assert back is not None
        assert back.embedder == GENERAL
        assert back.former == FormerEmbedder(embedder="tiny48", embedding_dim=48)
    assert len(log.written) == 2


async def test_completed_declarations_are_stored_without_it() -> None:
    general = GeneralMode("tiny48", FakeEmbedders())
    await general.agree(empty_log())
    completed = general.complete(ModeDeclarations(user_default="code"))
    assert completed.model_dump_json() == ModeDeclarations(user_default="code").model_dump_json()
    assert [mode.embedder for mode in completed.visible(None)] == ["tiny48"]


async def test_embedder_that_a_worker_lacks_is_refused_with_the_way_out() -> None:
    with pytest.raises(SystemExit, match=r"MODESTREAM_GENERAL_EMBEDDER: 'nope' .* MODESTREAM_EMBEDDERS: add it"):
        GeneralMode("nope", FakeEmbedders())
    log = empty_log()
    log.put(GENERAL_EMBEDDER_KEY, GeneralEmbedder(embedder="nope"))
    with pytest.raises(SystemExit, match="the deployment's general embedder"):
        await general_by_start(log)
