"""Templates of a deployment: read beside the project's, and refused at the start where a step could not fill them."""

from pathlib import Path

import pytest

from streams.bootstrap.prompts import PROMPT_USES, Prompts, open_prompts
from streams.settings import Settings

TURN = "<<< {{mark}} turn\n{{turn}}\n>>> {{mark}}"
OWN = f"# System\n\nDescribe it.\n\n# User\n\nThe turn:\n{TURN}\n"


def settings(directory: Path, **fields: object) -> Settings:
    return Settings.model_validate({"prompts": directory, **fields})


def test_own_template_is_found_beside_those_of_the_project(tmp_path: Path) -> None:
    (tmp_path / "understand-acme-2.md").write_text(OWN)
    (tmp_path / "notes.txt").write_text("not a template")
    prompts = Prompts(tmp_path)
    assert prompts.versions("understand") == ["understand-1", "understand-2", "understand-3", "understand-acme-2"]
    assert prompts.get("understand-acme-2").text == OWN
    assert prompts.of("understand").version == "understand-3"


def test_project_has_a_usable_template_for_every_step() -> None:
    prompts = Prompts()
    assert {name: prompts.of(name).version for name in PROMPT_USES} == {
        name: use.default for name, use in PROMPT_USES.items()
    }


def test_chosen_version_is_used(tmp_path: Path) -> None:
    (tmp_path / "understand-acme.md").write_text(OWN)
    chosen = open_prompts(settings(tmp_path, prompt_versions={"understand": "understand-acme"}))
    assert chosen.of("understand").version == "understand-acme"
    assert chosen.of("rerank").version == "rerank-1"


@pytest.mark.parametrize(
    ("chosen", "says"),
    [
        ({"understand": "understand-9"}, "there is no template 'understand-9'; there are understand-1"),
        ({"understand": "rerank-1"}, "there is no template 'rerank-1'; there are understand-1"),
        (
            {"translate": "understand-1"},
            "there are no templates for ['translate']; there are some for adjust, answer, categorize",
        ),
    ],
)
def test_version_that_the_name_does_not_have_is_refused(chosen: dict[str, str], says: str, tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="MODESTREAM_PROMPT_VERSIONS") as refused:
        open_prompts(settings(tmp_path, prompt_versions=chosen))
    assert says in str(refused.value)


@pytest.mark.parametrize(
    ("file", "text", "says"),
    [
        ("understand-1.md", OWN, "has the version of one of the project's templates"),
        ("understand.md", OWN, "a template is named <name>-<version>.md"),
        ("translate-1.md", OWN, "<name> is one of adjust, answer, categorize"),
        ("understand-8.md", "Describe {{turn}}.", "needs the headings `# System` and `# User`"),
        ("understand-2.md", OWN.replace("{{turn}}", "{{turns}}"), "unknown placeholders ['turns']"),
        ("understand-2.md", OWN.replace("{{turn}}", "{{about}}"), "no placeholder ['turn']"),
        ("understand-2.md", OWN.replace("Describe it", "Describe {{turn}}"), "['turn'] are under `# System`"),
        ("understand-2.md", OWN.replace(TURN, "{{turn}}"), "['turn'] are not between"),
        ("understand-2.md", OWN + "\nBy {{about}}.", "['about'] are not between"),
        ("understand-2.md", OWN.replace(">>> {{mark}}", ""), "['turn'] are not between"),
        ("understand-2.md", OWN.replace("<<< {{mark}} turn", "<<< {{mark}} {{turn}}"), "['turn'] are not between"),
    ],
)
def test_template_that_can_not_be_used_ends_the_start(file: str, text: str, says: str, tmp_path: Path) -> None:
    (tmp_path / file).write_text(text)
    with pytest.raises(SystemExit, match="MODESTREAM_PROMPTS") as refused:
        open_prompts(settings(tmp_path))
    assert says in str(refused.value)
    assert file in str(refused.value)


def test_missing_directory_ends_the_start(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="is no directory"):
        open_prompts(settings(tmp_path / "none"))
