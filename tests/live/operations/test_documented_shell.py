"""The shell commands of README and docs, taken out of the pages and run against a worker."""

import json
import os
import re
import signal
from asyncio import create_subprocess_exec, timeout
from asyncio.subprocess import PIPE
from typing import Any

import pytest

from tests.worlds.live.kcat import needs_kcat
from tests.worlds.live.processes import ROOT, Deployment

DOCUMENTED_BROKER = "127.0.0.1:9092"
DOCUMENTED_PREFIX = "memory."
SHELL = re.compile(r"```sh\n(.*?)```", re.DOTALL)
FUNCTION = re.compile(r"^ask\(\) \{.*?^\}\n", re.DOTALL | re.MULTILINE)

REPETITIONS = 40
"""Of 120 questions of a function that began to read at the time of the request, 8 waited for ever."""

ANSWERED_WITHIN_S = 20.0

LISTING = '{"schema":"list.v1","scope":{"user_id":"ana"},"what":"memories","contains":"third pot"}'
LATER = (
    '{"schema":"turn.v1","turn_id":"later","scope":{"user_id":"ana"},"conversation_id":"c1","role":"user",'
    '"content":"Well."}'
)

QUESTION = '{"schema":"retrieve.v1","scope":{"user_id":"ana"},"query":"where is the spare key?"}'


def shell(page: str, deployment: Deployment) -> str:
    """Return the shell block of a page that calls `ask`, for the deployment's broker and topics."""
    [block] = [block for block in SHELL.findall((ROOT / page).read_text()) if "ask turns" in block]
    return str(block).replace(DOCUMENTED_BROKER, deployment.bootstrap).replace(DOCUMENTED_PREFIX, deployment.prefix)


def ask_function(deployment: Deployment) -> str:
    found = FUNCTION.search(shell("README.md", deployment))
    assert found
    return found.group()


async def run(script: str) -> str:
    bash = await create_subprocess_exec(
        "bash", "-euo", "pipefail", "-c", script, stdout=PIPE, stderr=PIPE, start_new_session=True
    )
    try:
        async with timeout(ANSWERED_WITHIN_S):
            out, errors = await bash.communicate()
    except TimeoutError:
        os.killpg(bash.pid, signal.SIGKILL)
        pytest.fail(f"no end after {ANSWERED_WITHIN_S:g} s")
    assert bash.returncode == 0, errors.decode()
    return out.decode()


def replies(output: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in output.splitlines() if line.startswith('{"schema":"reply.v1"')]


@needs_kcat
async def test_commands_of_the_readme_store_and_find_a_turn(shared_deployment: Deployment) -> None:
    deployment = shared_deployment
    await deployment.serving()
    stored, found = replies(await run(shell("README.md", deployment)))
    assert stored["status"] == "ok"
    assert found["result"]["hits"][0]["memory_id"] == stored["result"]["memory_id"]


@needs_kcat
async def test_shell_function_ends_with_its_reply_every_time(shared_deployment: Deployment) -> None:
    deployment = shared_deployment
    await deployment.serving()
    for _ in range(REPETITIONS):
        [reply] = replies(await run(f"{ask_function(deployment)}\nask retrieve '{QUESTION}'"))
        assert reply["status"] == "ok"


@needs_kcat
async def test_commands_of_the_concepts_page_declare_and_ask_a_mode(shared_deployment: Deployment) -> None:
    deployment = shared_deployment
    await deployment.serving()
    output = await run(ask_function(deployment) + shell("docs/concepts.md", deployment))
    *_, moved, found = replies(output)
    assert moved["result"]["mode"] == "journal"
    assert found["result"]["modes"]
    assert re.search(r'^ana \{.*"journal"', output, re.MULTILINE)


@needs_kcat
async def test_turns_of_the_readme_again_are_the_same_memories(shared_deployment: Deployment) -> None:
    deployment = shared_deployment
    await deployment.serving()
    readme = shell("README.md", deployment)
    await run(readme)
    listing = f"{ask_function(deployment)}\nask retrieve '{LISTING}'"
    [before] = replies(await run(listing))
    copy = (
        f"kcat -b {deployment.bootstrap} -C -q -e -t {deployment.prefix}turns -o beginning -f '%s\\n'"
        " | grep 'third pot'"
        f" | kcat -b {deployment.bootstrap} -P -t {deployment.prefix}turns -k ana -X partitioner=murmur2_random"
    )
    # A turn is answered when those before it are applied.
    await run(f"{ask_function(deployment)}\n{copy}\n{copy}\nask turns '{LATER}'")
    [after] = replies(await run(listing))
    assert {item["memory_id"] for item in after["result"]["items"]} == {
        item["memory_id"] for item in before["result"]["items"]
    }
