import json
from pathlib import Path

import pytest
from pydantic import ValidationError

from schemas.models.language import Profile, Profiles
from streams.settings import Settings


@pytest.fixture(autouse=True)
def _elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)


def test_defaults_follow_the_contract() -> None:
    settings = Settings()
    assert settings.broker == "kafka://127.0.0.1:9092"
    assert settings.data_dir == Path(".modestream")
    assert settings.topic_prefix == "memory."
    assert settings.partitions == 4
    assert settings.replication_factor == 1
    assert settings.qdrant_url is None
    assert settings.qdrant_api_key is None
    assert settings.log_level == "info"


def test_no_profiles_and_no_embedders_by_default() -> None:
    settings = Settings()
    assert len(settings.llm_profiles) == 0
    assert settings.embedders == {}


def test_profiles_and_embedders_are_parsed_from_json(monkeypatch: pytest.MonkeyPatch) -> None:
    profile = {"model": "openai/gpt-x", "api_base": None, "api_key_env": "OPENAI_API_KEY", "temperature": 0}
    more = {"max_tokens": 1000, "timeout_s": 20, "retries": 2, "structured_output": "json_object"}
    tiny = {"path": "/models/tiny", "dim": 32, "pooling": "mean", "normalize": True, "query_prefix": ""}
    monkeypatch.setenv("MODESTREAM_LLM_PROFILES", json.dumps({"default": profile | more}))
    monkeypatch.setenv("MODESTREAM_EMBEDDERS", json.dumps({"tiny": tiny}))
    settings = Settings()
    [(name, read)] = settings.llm_profiles.items()
    assert name == "default"
    assert read.model == "openai/gpt-x"
    assert read.structured_output == "json_object"
    assert settings.embedders["tiny"].path == Path("/models/tiny")
    assert settings.embedders["tiny"].dim == 32


def test_environment_precedes_env_file_precedes_defaults(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("MODESTREAM_PARTITIONS=8\nMODESTREAM_TOPIC_PREFIX=file.\nOTHER=1\n")
    monkeypatch.setenv("MODESTREAM_TOPIC_PREFIX", "shell.")
    settings = Settings()
    assert settings.partitions == 8
    assert settings.topic_prefix == "shell."


def test_variable_without_the_prefix_is_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PARTITIONS", "8")
    assert Settings().partitions == 4


@pytest.mark.parametrize(
    ("broker", "servers"),
    [("kafka://a:9092", ["a:9092"]), ("kafka://a:9092;kafka://b:9093", ["a:9092", "b:9093"]), ("a:9092", ["a:9092"])],
)
def test_broker_addresses_may_omit_the_scheme(broker: str, servers: list[str]) -> None:
    assert Settings(broker=broker).bootstrap_servers == servers


def test_models_are_in_the_data_directory_by_default(tmp_path: Path) -> None:
    assert Settings(data_dir=tmp_path).models == tmp_path / "models"
    assert Settings(data_dir=tmp_path, model_dir=Path("shared")).models == Path("shared")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PARTITIONS", "0"),
        ("PARTITIONS", "many"),
        ("REPLICATION_FACTOR", "0"),
        ("METRICS_PORT", "65536"),
        ("LOG_LEVEL", "loud"),
        ("EMBEDDING_PRECISION", "int4"),
        ("LLM_PROFILES", '{"fast":{"model":"openai/gpt-x"}}'),
        ("LLM_PROFILES", '{"default":{"model":"openai/gpt-x","api_key":"a key"}}'),
        ("EMBEDDERS", '{"tiny":{"path":"/models/tiny"}}'),
        ("LLM_CONCURRENCY", "0"),
        ("LLM_BACKLOG_PER_SECOND", "0"),
    ],
)
def test_invalid_value_is_rejected(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv(f"MODESTREAM_{name}", value)
    with pytest.raises(ValidationError, match=name.lower()):
        Settings()


def test_categories_are_descriptions_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Settings().categories.root == {}
    monkeypatch.setenv("MODESTREAM_CATEGORIES", json.dumps({"health": "doctors and sports", "travel": ""}))
    assert Settings().categories.root == {"health": "doctors and sports", "travel": ""}
    for wrong in ({" ": "x"}, {"a\nb": "x"}, {"a" * 65: "x"}, ["health"]):
        monkeypatch.setenv("MODESTREAM_CATEGORIES", json.dumps(wrong))
        with pytest.raises(ValidationError):
            Settings()


def test_secrets_of_a_worker_are_the_keys_of_models_and_of_the_vector_store() -> None:
    profiles = Profiles({"default": Profile(model="openai/m", api_key_env="MODEL_KEY"), "free": Profile(model="m")})
    assert Settings(llm_profiles=profiles).worker_secrets == {
        "MODEL_KEY",
        "MODESTREAM_QDRANT_API_KEY",
        "MODESTREAM_SCHEMA_REGISTRY",
    }
