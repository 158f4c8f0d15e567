"""A worker starts at once in the place of an ended process, and never in that of a running one."""

import json
import shutil
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

import pytest

from streams.bootstrap import member_guard
from streams.bootstrap.member_guard import MemberFile, check_member, running_on

OWN, OTHER, FORMER = "w1-12ab34cd-0000-1", "w1-12ab34cd-0000-2", "w1-12ab34cd-0000-1"
NAME = "w1-12ab34cd"


class Group:
    """A group with these members, one list for each look; the last one stays."""

    def __init__(self, *looks: tuple[str, ...]) -> None:
        self._looks = [*looks]
        self.asked = 0

    async def hosts(self) -> Mapping[str, str]:
        self.asked += 1
        look = self._looks.pop(0) if len(self._looks) > 1 else self._looks[0]
        return dict.fromkeys(look, "10.0.0.7")


def test_a_member_counts_unless_it_is_the_former_one_of_this_directory() -> None:
    assert running_on({OTHER: "10.0.0.7"}, NAME, FORMER) == "10.0.0.7"
    assert running_on({FORMER: "10.0.0.7"}, NAME, None) == "10.0.0.7"
    assert running_on({FORMER: "10.0.0.7"}, NAME, FORMER) is None
    assert running_on({"w2-12ab34cd-0000-1": "10.0.0.7"}, NAME, None) is None
    assert running_on({}, NAME, FORMER) is None


async def test_running_worker_with_the_id_refuses_the_start() -> None:
    with pytest.raises(SystemExit, match=r"MODESTREAM_WORKER_ID: another worker .* on 10\.0\.0\.7.*\nGive this worker"):
        await check_member(NAME, FORMER, Group((OTHER,)).hosts, patience_s=0)


async def test_member_that_ended_elsewhere_is_waited_for() -> None:
    group = Group((OTHER,), (OTHER,), ())
    await check_member(NAME, None, group.hosts)
    assert group.asked == 3


async def test_restarted_worker_does_not_wait() -> None:
    group = Group((FORMER,))
    await check_member(NAME, FORMER, group.hosts, patience_s=0)
    assert group.asked == 1


def lived(file: Path, member_id: str | None = None) -> str | None:
    """Start a worker, which joins as `member_id`, and end it; return the former member that it knew."""
    with closing(MemberFile(file)) as own:
        if member_id is not None:
            own.note(member_id)
        return own.former


def test_member_of_an_ended_process_is_known_to_the_next(tmp_path: Path) -> None:
    file = tmp_path / "run" / "member.json"
    assert lived(file, OWN) is None
    # The first of these ends before it has joined.
    assert lived(file) == OWN
    assert lived(file) == OWN


def test_directory_in_use_is_refused_with_its_process(tmp_path: Path) -> None:
    file = tmp_path / "data" / "run" / "member.json"
    with (
        closing(MemberFile(file)),
        pytest.raises(SystemExit, match=r"MODESTREAM_WORKER_ID: .*/data/run is in use by another worker, process \d"),
    ):
        MemberFile(file)
    assert lived(file) is None


def test_copied_directory_does_not_vouch_for_the_member(tmp_path: Path) -> None:
    lived(tmp_path / "a" / "run" / "member.json", OWN)
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    assert lived(tmp_path / "b" / "run" / "member.json") is None
    assert lived(tmp_path / "b" / "run" / "member.json") is None


def test_clone_on_another_machine_does_not_vouch_for_the_member(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lived(tmp_path / "member.json", OWN)
    (other := tmp_path / "boot_id").write_text("of another kernel\n")
    monkeypatch.setattr(member_guard, "BOOT_ID", other)
    assert lived(tmp_path / "member.json") is None


@pytest.mark.parametrize("content", ["", "{", "[]", json.dumps({"member": OWN})])
def test_damaged_file_is_made_again(tmp_path: Path, content: str) -> None:
    file = tmp_path / "member.json"
    file.write_text(content)
    assert lived(file, OWN) is None
    assert lived(file) == OWN
