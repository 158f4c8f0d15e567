"""Models that users name are fetched from a hub: in the background, whole or not at all, within limits."""

import asyncio
import json
import re
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fastembed import TextEmbedding
from fastembed.common.model_description import ModelSource, PoolingType
from fastembed.text.custom_text_embedding import CustomTextEmbedding

from schemas.failures import ModelMissing
from schemas.state.modes import GENERAL, Mode
from streams.adapters.embedding.catalog import model_loading
from streams.adapters.embedding.catalog.fetching import FETCH_COMMAND, FetchLimits
from streams.adapters.embedding.catalog.model_loading import LoadBackoff
from streams.adapters.embedding.catalog.presets import build_catalog, fastembed_entries
from streams.adapters.embedding.catalog.registry import EmbedderRegistry
from tests.builders.tiny_models import write_tiny_model
from tests.fakes.model_hub import ModelHub, serving
from tests.harnesses.embedder_registry import general_in, ready, until_state

SMALL = "BAAI/bge-small-en-v1.5"
ON_HUB = "Qdrant/bge-small-en-v1.5-onnx-Q"
SMALL_MODE = Mode(name="notes", embedder=SMALL, embedding_dim=384)
UNLIMITED = FetchLimits()
STATIC, STATIC_DIM = "minishlab/potion-base-8M", 256

Status = dict[str, Any]


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelHub]:
    """A hub with one model of 384 dimensions."""
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    monkeypatch.setenv("HF_HOME", str(tmp_path / "home"))
    folder = write_tiny_model(tmp_path / "hub" / ON_HUB, 384, words=("red", "house"))
    (folder / "model.onnx").rename(folder / "model_optimized.onnx")
    with serving(tmp_path / "hub") as served:
        monkeypatch.setenv("HF_ENDPOINT", served.address)
        yield served


class Worker:
    """A registry in which modes may name every model, over a folder of models."""

    def __init__(self, shared: Path, folder: Path, limits: FetchLimits) -> None:
        catalog = build_catalog(folder / "models", {}, "int8")
        entries = fastembed_entries(folder / "models", limits, catalog) | catalog | {GENERAL: general_in(shared)}
        backoff = LoadBackoff(30.0, 30.0)
        self.registry = EmbedderRegistry(entries, shared / "run", 1, backoff, limits=limits)
        self.fetched = folder / "models" / "fetched"

    async def failed(self) -> Status:
        self.registry.prepare(SMALL)
        await until_state(self.registry, SMALL, "failed")
        return self.registry.status()[SMALL]

    def files(self) -> list[str]:
        return sorted(path.name for path in self.fetched.rglob("*") if path.is_file() and path.suffix != ".lock")


@asynccontextmanager
async def working(shared: Path, folder: Path, limits: FetchLimits = UNLIMITED) -> AsyncIterator[Worker]:
    """Yield a worker, and stop it."""
    made = Worker(shared, folder, limits)
    try:
        yield made
    finally:
        await made.registry.close()


@pytest.fixture
async def worker(hub: ModelHub, shared: Path, tmp_path: Path) -> AsyncIterator[Worker]:
    assert hub.address
    async with working(shared, tmp_path) as made:
        yield made


async def test_declared_model_is_fetched_and_gives_the_vectors_of_fastembed(worker: Worker, hub: ModelHub) -> None:
    worker.registry.prepare(SMALL)
    await until_state(worker.registry, SMALL, "ready")
    vector = (await (await ready(worker.registry, SMALL_MODE)).passage("the red house")).pooled
    [expected] = TextEmbedding(SMALL, specific_model_path=str(hub.folder / ON_HUB)).embed(["the red house"])
    assert np.allclose(vector, expected, atol=1e-6)


async def test_fetched_model_is_used_without_the_hub(
    worker: Worker, hub: ModelHub, shared: Path, tmp_path: Path
) -> None:
    worker.registry.prepare(SMALL)
    await until_state(worker.registry, SMALL, "ready")
    await worker.registry.close()
    hub.requests.clear()
    async with working(shared, tmp_path) as later:
        await ready(later.registry, SMALL_MODE)
    assert not hub.requests


async def test_progress_counts_the_bytes_on_the_disk(worker: Worker, hub: ModelHub) -> None:
    hub.stop_after = 200_000
    worker.registry.prepare(SMALL)
    async with asyncio.timeout(60):
        while worker.registry.status()[SMALL].get("fetched_bytes", 0) < 4096:
            await asyncio.sleep(0.05)
    status = worker.registry.status()[SMALL]
    whole = sum(path.stat().st_size for path in (hub.folder / ON_HUB).iterdir())
    assert status["state"] == "loading"
    assert status["total_bytes"] == whole
    assert status["fetched_bytes"] < whole


async def test_model_under_way_is_missing_and_others_answer(worker: Worker, hub: ModelHub) -> None:
    hub.stop_after = 0
    await worker.registry.start()
    worker.registry.prepare(SMALL)
    await asyncio.to_thread(hub.stopped.wait, 60)
    with pytest.raises(ModelMissing, match=SMALL):
        worker.registry.of(SMALL_MODE)
    general = await ready(worker.registry, Mode(name=GENERAL, embedder=GENERAL, embedding_dim=8))
    assert (await general.passage("red")).pooled.shape == (8,)


@pytest.mark.parametrize(("status", "code"), [(404, "not_found"), (401, "not_allowed"), (503, "unavailable")])
async def test_refusal_of_the_hub_has_a_code(worker: Worker, hub: ModelHub, status: int, code: str) -> None:
    hub.status = status
    assert (await worker.failed())["code"] == code


async def test_model_that_the_hub_lacks_says_where_to_put_its_files(worker: Worker, hub: ModelHub) -> None:
    shutil.rmtree(hub.folder / ON_HUB)
    failed = await worker.failed()
    assert failed["code"] == "not_found"
    assert "put its files into MODEL_DIR/BAAI--bge-small-en-v1.5" in failed["error"]


async def test_model_without_its_file_is_not_found(worker: Worker, hub: ModelHub) -> None:
    (hub.folder / ON_HUB / "model_optimized.onnx").unlink()
    failed = await worker.failed()
    assert failed["code"] == "not_found"
    assert "model_optimized.onnx" in failed["error"]


async def test_download_may_be_forbidden(worker: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert (await worker.failed())["code"] == "offline"


async def test_failed_fetch_is_repeated_when_the_mode_is_declared_again(
    worker: Worker, hub: ModelHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_loading, "MIN_RETRY_S", 0.0)
    hub.status = 503
    await worker.failed()
    hub.status = 200
    worker.registry.prepare(SMALL)
    await until_state(worker.registry, SMALL, "ready")


async def test_declarations_in_a_row_ask_the_hub_once(worker: Worker, hub: ModelHub) -> None:
    hub.status = 404
    await worker.failed()
    asked = len(hub.requests)
    for _ in range(20):
        worker.registry.prepare(SMALL)
        await asyncio.sleep(0)
    await asyncio.sleep(0.2)
    assert len(hub.requests) == asked


async def test_damaged_file_is_not_used(worker: Worker, hub: ModelHub) -> None:
    hub.damaged.add("model_optimized.onnx")
    assert (await worker.failed())["code"] == "damaged"
    assert "model_optimized.onnx" not in worker.files()


async def test_kill_in_the_middle_leaves_nothing_half_and_the_next_fetch_goes_on(
    worker: Worker, hub: ModelHub, shared: Path, tmp_path: Path
) -> None:
    hub.stop_after = 200_000
    worker.registry.prepare(SMALL)
    await asyncio.to_thread(hub.stopped.wait, 60)
    await _until_on_disk(worker, 90_000)
    await worker.registry.close()
    assert not (worker.fetched / "Qdrant--bge-small-en-v1.5-onnx-Q").exists()
    hub.stop_after = None
    hub.requests.clear()
    async with working(shared, tmp_path) as later:
        later.registry.prepare(SMALL)
        await until_state(later.registry, SMALL, "ready")
    assert any("bytes=" in request and "model_optimized" in request for request in hub.requests)


async def _until_on_disk(worker: Worker, count: int) -> None:
    async with asyncio.timeout(60):
        while sum(path.stat().st_size for path in worker.fetched.rglob("*.incomplete")) < count:
            await asyncio.sleep(0.05)


async def test_fetch_ends_with_its_worker(hub: ModelHub, tmp_path: Path) -> None:
    hub.stop_after = 0
    options = {"hub": ON_HUB, "files": ["model_optimized.onnx"], "folder": str(tmp_path / "m" / "x"), "by_hand": "x"}
    fetch = await asyncio.create_subprocess_exec(*FETCH_COMMAND, json.dumps(options), stdin=asyncio.subprocess.PIPE)
    await asyncio.to_thread(hub.stopped.wait, 60)
    assert fetch.stdin
    fetch.stdin.close()
    async with asyncio.timeout(60):
        assert await fetch.wait() == 0


async def test_two_workers_fetch_a_model_once(worker: Worker, hub: ModelHub, shared: Path, tmp_path: Path) -> None:
    async with working(shared, tmp_path) as other:
        for each in (worker, other):
            each.registry.prepare(SMALL)
        for each in (worker, other):
            await until_state(each.registry, SMALL, "ready")
    assert sum(request.startswith("GET") and "model_optimized" in request for request in hub.requests) == 1


LIMITS = {
    "too_large": (FetchLimits(max_model_bytes=1000), r"more than 0\.0 MB \(FETCH_MAX_MODEL_MB\)"),
    "too_many": (FetchLimits(max_models=1), r"1 models are fetched, the limit \(FETCH_MAX_MODELS\)"),
}


@pytest.mark.parametrize("code", LIMITS)
async def test_refused_size_and_number_say_what_to_do(hub: ModelHub, shared: Path, tmp_path: Path, code: str) -> None:
    assert hub.address
    limits, sentence = LIMITS[code]
    write_tiny_model(tmp_path / "models" / "fetched" / "other", 8)
    async with working(shared, tmp_path, limits) as limited:
        failed = await limited.failed()
    assert failed["code"] == code
    assert re.search(sentence, failed["error"])


async def test_disk_of_all_fetched_models_is_limited(hub: ModelHub, shared: Path, tmp_path: Path) -> None:
    other = write_tiny_model(tmp_path / "models" / "fetched" / "other", 8)
    present = sum(path.stat().st_size for path in other.iterdir())
    assert hub.address
    async with working(shared, tmp_path, FetchLimits(max_total_bytes=present + 1000)) as limited:
        failed = await limited.failed()
    assert "FETCH_MAX_TOTAL_MB" in failed["error"]


async def test_model_that_the_disk_has_no_room_for_is_not_begun(worker: Worker, hub: ModelHub) -> None:
    hub.stated_bytes["model_optimized.onnx"] = 10**15
    failed = await worker.failed()
    assert failed["code"] == "disk_full"
    assert "make room on the disk of MODEL_DIR" in failed["error"]
    assert not any("resolve" in request for request in hub.requests)


CAN_MOUNT = (
    shutil.which("unshare")
    and not subprocess.run(
        ["unshare", "-Urm", "mount", "-t", "tmpfs", "none", "/mnt"], capture_output=True, check=False
    ).returncode
)


@pytest.mark.skipif(not CAN_MOUNT, reason="no mount in a user namespace here")
def test_disk_that_fills_up_on_the_way_leaves_no_byte(hub: ModelHub, tmp_path: Path) -> None:
    assert hub.address
    folder = tmp_path / "small"
    folder.mkdir()
    options = {
        "hub": ON_HUB,
        "files": ["model_optimized.onnx"],
        "folder": str(folder / "model"),
        "by_hand": "MODEL_DIR/model",
    }
    # The disk fills while the file arrives: the room is not looked at before.
    run = (
        f"import sys; sys.argv = ['fetch', {json.dumps(options)!r}];"
        "from streams.adapters.embedding.catalog import fetch_process; fetch_process.MIN_FREE_BYTES = -10**9;"
        "fetch_process.main()"
    )
    script = f'mount -t tmpfs -o size=64k none {folder}; {sys.executable} -c "$1"; find {folder} -name "*.incomplete"'
    command = ["unshare", "-Urm", "sh", "-c", script, "sh", run]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as fetch:
        assert fetch.stdout
        printed = fetch.stdout.read()
    assert '"code": "disk_full"' in printed
    assert ".incomplete" not in printed


def test_every_text_model_of_fastembed_may_be_named_and_no_opened_folder(tmp_path: Path) -> None:
    own = "modestream/opened"
    with suppress(ValueError):  # Where this test was repeated.
        TextEmbedding.add_custom_model(own, PoolingType.MEAN, normalization=True, sources=ModelSource(hf=own), dim=8)
    added = {model.model for model in CustomTextEmbedding.SUPPORTED_MODELS}
    names = {model["model"] for model in TextEmbedding.list_supported_models()}
    assert set(fastembed_entries(tmp_path, FetchLimits())) == names - added


def test_published_size_above_the_limit_is_refused_at_once(tmp_path: Path) -> None:
    entries = fastembed_entries(tmp_path, FetchLimits(max_model_bytes=100_000_000))
    assert "FETCH_MAX_MODEL_MB" in entries["intfloat/multilingual-e5-large"].description.refused
    assert not entries[SMALL].description.refused


async def test_model_that_fastembed_runs_itself_gives_its_vectors(hub: ModelHub, worker: Worker) -> None:
    folder = hub.folder / STATIC
    write_tiny_model(folder, 8, words=("red", "house"))
    tokens = len(json.loads((folder / "tokenizer.json").read_text())["model"]["vocab"])
    table = np.random.default_rng(0).standard_normal((tokens, STATIC_DIM)).astype(np.float32)
    header = {"embeddings": {"dtype": "F32", "shape": table.shape, "data_offsets": [0, table.nbytes]}}
    described = json.dumps(header).encode()
    (folder / "model.safetensors").write_bytes(len(described).to_bytes(8, "little") + described + table.tobytes())
    mode = Mode(name="notes", embedder=STATIC, embedding_dim=STATIC_DIM)
    vector = (await (await ready(worker.registry, mode)).passage("the red house")).pooled
    [expected] = TextEmbedding(STATIC, specific_model_path=str(folder)).embed(["the red house"])
    assert np.allclose(vector, expected, atol=1e-6)
