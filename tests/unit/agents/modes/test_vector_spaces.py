import pytest

from agents.modes.vector_spaces import VectorSpaces
from schemas.failures import ModelMissing, Rejected
from schemas.state.modes import GENERAL, Mode
from streams.flow.stores import at_partition
from tests.builders.memories import made
from tests.fakes.embedders import FakeEmbedders
from tests.fakes.tables.modes import FakeModes

CODE = Mode(name="code", embedder="tiny32", embedding_dim=32)
OWN = Mode(name="code", embedder="tiny48", embedding_dim=48, project="p1")


class SpacesHarness:
    def __init__(self, *modes: Mode) -> None:
        self.modes, self.embedders = FakeModes(), FakeEmbedders()
        self.modes.declare(*modes, boundary="ana")
        self.spaces = VectorSpaces(at_partition(self.modes, 0), self.embedders)


def test_vector_space_is_that_of_mode_and_embedder() -> None:
    spaces = SpacesHarness(CODE).spaces
    embedder, space = spaces.of(made("a", mode="code"))
    assert space.mode == "code"
    assert space.fingerprint == embedder.fingerprint
    assert space.fingerprint.dim == 32
    assert spaces.of(made("a"))[1].fingerprint.dim == 384


def test_project_mode_precedes_the_users_mode() -> None:
    spaces = SpacesHarness(CODE, OWN).spaces
    dims = {project: spaces.of(made("a", mode="code", project=project))[1].fingerprint.dim for project in ("p1", "p2")}
    assert dims == {"p1": 48, "p2": 32}


def test_modes_of_one_embedder_and_prefix_share_a_space_but_no_collection() -> None:
    spaces = SpacesHarness(CODE, Mode(name="notes", embedder="tiny32", embedding_dim=32)).spaces
    code, notes = (spaces.of(made("a", mode=mode))[1] for mode in ("code", "notes"))
    assert code.fingerprint == notes.fingerprint
    assert code.collection != notes.collection


def test_passage_prefix_changes_the_space_and_query_prefix_does_not() -> None:
    plain, *others = (
        SpacesHarness(CODE.model_copy(update=change)).spaces.of(made("a", mode="code"))[1].fingerprint.digest
        for change in ({}, {"passage_prefix": "p: "}, {"query_prefix": "q: "})
    )
    assert [other == plain for other in others] == [False, True]


@pytest.mark.parametrize(("mode", "user"), [("gone", "ana"), ("code", "ben")])
def test_mode_that_its_user_has_not_declared_has_no_space(mode: str, user: str) -> None:
    spaces = SpacesHarness(CODE).spaces
    with pytest.raises(Rejected, match="unknown_mode"):
        spaces.of(made("a", mode=mode, user=user))
    with pytest.raises(Rejected, match="unknown_mode"):
        spaces.mode(user, mode, {"project_id": "default"})


def test_project_mode_is_unknown_without_a_project() -> None:
    spaces = SpacesHarness(OWN).spaces
    assert spaces.mode("ana", "code", {"project_id": "p1"}) == OWN
    with pytest.raises(Rejected, match="unknown_mode"):
        spaces.mode("ana", "code", {})


def test_unloaded_model_raises_until_loaded() -> None:
    spaces = SpacesHarness(CODE)
    spaces.embedders.missing("tiny32")
    with pytest.raises(ModelMissing, match="tiny32"):
        spaces.spaces.of(made("a", mode="code"))
    assert spaces.spaces.of(made("a"))[1].mode == GENERAL
    spaces.embedders.load("tiny32")
    assert spaces.spaces.of(made("a", mode="code"))[1].mode == "code"


def test_redeclaration_applies_to_the_next_call() -> None:
    spaces = SpacesHarness()
    with pytest.raises(Rejected):
        spaces.spaces.of(made("a", mode="code"))
    spaces.modes.declare(CODE, boundary="ana")
    assert spaces.spaces.of(made("a", mode="code"))[1].mode == "code"


def test_visible_modes_are_those_of_the_projects_and_general() -> None:
    spaces = SpacesHarness(OWN, Mode(name="notes", embedder="tiny32", embedding_dim=32)).spaces

    def names(projects: tuple[str, ...] | None) -> list[str]:
        return [mode.name for mode in spaces.visible("ana", projects)]

    assert names(("p1",)) == ["code", GENERAL, "notes"]
    assert names(("p2",)) == [GENERAL, "notes"]
    assert names(()) == [GENERAL, "notes"]
    assert names(None) == ["code", GENERAL, "notes"]
