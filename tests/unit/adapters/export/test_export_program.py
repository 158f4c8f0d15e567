"""The exporter as a program: started if an export is missing, ended with its parent."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from schemas.failures import ModelMissing
from streams.adapters.embedding.inference import local_model
from streams.adapters.embedding.inference.local_model import EXPORT_COMMAND, LocalModel, ensure_exported
from streams.adapters.exported_models import MINILM, is_complete


def minilm(folder: Path) -> LocalModel:
    return LocalModel(MINILM.name, folder, 384, "fp32")


def run_instead(monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    monkeypatch.setattr(local_model, "EXPORT_COMMAND", (sys.executable, "-c", code))


def test_missing_export_is_made_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    ensure_exported(minilm(tmp_path / "model"), "fp32")
    assert is_complete(MINILM.name, tmp_path / "model", "fp32")
    assert [json.loads(line)["event"] for line in capfd.readouterr().out.splitlines()] == [
        "exporting all-MiniLM-L6-v2 to ONNX",
        "all-MiniLM-L6-v2 in fp32 is ready",
    ]
    run_instead(monkeypatch, "raise SystemExit('started again')")
    ensure_exported(minilm(tmp_path / "model"), "fp32")


def test_failed_export_is_missing_model_with_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run_instead(monkeypatch, "raise ValueError('other weights')")
    with pytest.raises(ModelMissing, match=r"^all-MiniLM-L6-v2 could not be exported: ValueError: other weights$"):
        ensure_exported(minilm(tmp_path / "model"), "fp32")


def test_killed_export_is_missing_model_with_exit_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run_instead(monkeypatch, "import os; os.kill(os.getpid(), 9)")
    with pytest.raises(ModelMissing, match="the exporter ended with code -9"):
        ensure_exported(minilm(tmp_path / "model"), "fp32")


def test_exporter_ends_with_its_parent(tmp_path: Path) -> None:
    command = [*EXPORT_COMMAND, MINILM.name, str(tmp_path / "model"), "int8"]
    root = Path(__file__).resolve().parents[4]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=root) as exporter:
        assert exporter.stdin
        assert exporter.stdout
        exporter.stdout.readline()
        exporter.stdin.close()
        assert exporter.wait(30) == 0
    assert not (tmp_path / "model").exists()
