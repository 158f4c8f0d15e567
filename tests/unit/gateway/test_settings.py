"""Settings of the gateway: a wrong one is refused at the start, with a sentence."""

import re
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from gateway.http.limits import Limits
from gateway.keys.key_file import Key, KeyFile, digest_of
from gateway.settings import GatewaySettings, without_policy
from streams.up.layout import choose_http_port, free_port


def settings(**given: Any) -> GatewaySettings:
    return GatewaySettings(_env_file=None, **given)


@pytest.mark.parametrize("bind", ["127.0.0.1:8080", "localhost:1", "[::1]:8080", "127.9.9.9:80"])
def test_loopback_needs_no_keys(bind: str) -> None:
    assert settings(gateway_bind=bind).address[1] > 0


@pytest.mark.parametrize("bind", ["0.0.0.0:8080", "192.168.1.5:8080", "[::]:8080", "memory.example:80"])
def test_another_address_needs_keys(bind: str) -> None:
    with pytest.raises(ValidationError, match="GATEWAY_KEYS"):
        settings(gateway_bind=bind)
    assert settings(gateway_bind=bind, gateway_keys=Path("keys.json")).address[0]


@pytest.mark.parametrize("bind", ["8080", "127.0.0.1", "127.0.0.1:x", "127.0.0.1:70000", ":8080"])
def test_what_is_no_address_is_refused(bind: str) -> None:
    with pytest.raises(ValidationError, match="host:port"):
        settings(gateway_bind=bind)


def test_hosts_are_parted_by_commas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MODESTREAM_GATEWAY_HOSTS", "memory.example, memory.example:8443")
    assert settings().gateway_hosts == ("memory.example", "memory.example:8443")


def test_limits_are_json_without_unknown_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MODESTREAM_GATEWAY_LIMITS", '{"reads_per_second": 5}')
    assert settings().gateway_limits.reads_per_second == 5
    monkeypatch.setenv("MODESTREAM_GATEWAY_LIMITS", '{"read_per_second": 5}')
    with pytest.raises(ValidationError, match="read_per_second"):
        settings()


@pytest.mark.parametrize("secret", ["", "a", "a" * 31])
def test_a_cookie_secret_that_can_be_guessed_is_refused(secret: str) -> None:
    with pytest.raises(ValidationError, match="at least 32"):
        settings(gateway_cookie_secret=secret)


def test_a_port_that_is_taken_is_replaced_by_a_free_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streams.up.layout.is_free", lambda _: False)
    assert choose_http_port(None) != 8080
    assert choose_http_port(0) > 0
    assert choose_http_port(port := free_port()) == port


def test_limits_are_documented() -> None:
    section = (
        (Path(__file__).parents[3] / "docs" / "gateway.md").read_text().partition("### Limits")[2].partition("\n## ")[0]
    )
    rows = [line.split(" | ")[:2] for line in section.splitlines() if line.startswith("| `")]
    named = [re.findall(r"`(\w+)`", row[0]) for row in rows]
    values = [[float(value.replace(",", "")) for value in row[1].split(", ")] for row in rows]
    documented = {name: value for row in zip(named, values, strict=True) for name, value in zip(*row, strict=True)}
    assert documented == Limits().model_dump()


def keys_of(folder: Path, *users: str | None) -> Path:
    """A file with a key for each user; None: a key of no user."""
    keys = [
        Key(id=f"k{number}", sha256=digest_of(f"ms_{number}"), principal="app", user_id=user)
        for number, user in enumerate(users)
    ]
    KeyFile(keys=tuple(keys)).write(path := folder / "keys.json")
    return path


def test_keys_without_a_policy_are_said_to_be_administrators(tmp_path: Path) -> None:
    [told] = without_policy(settings(gateway_keys=keys_of(tmp_path, None, "ana", None)))
    assert "MODESTREAM_AUTHORIZATION is not set: 2 of 3 keys, those without a user, are administrators" in told


def test_tokens_without_a_policy_are_said_to_be_administrators() -> None:
    oidc = {"issuer": "https://login.example", "audience": "modestream"}
    [told] = without_policy(settings(gateway_oidc=oidc))
    assert "all tokens, as GATEWAY_OIDC has no user_claim, are administrators" in told


def test_nothing_is_said_with_a_policy_or_without_callers(tmp_path: Path) -> None:
    keys = keys_of(tmp_path, None)
    assert without_policy(settings(gateway_keys=keys, authorization=tmp_path / "grants.json")) == []
    assert without_policy(settings()) == []


def test_all_keys_of_users_are_no_administrators(tmp_path: Path) -> None:
    assert without_policy(settings(gateway_keys=keys_of(tmp_path, "ana"))) == []


@pytest.mark.parametrize(
    "url", ["api.openai.com/v1", "ftp://x/v1", "http://", "https://x/v1?a=b", "https://x/v1#a", "https://u:p@x/v1"]
)
def test_a_provider_that_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(ValidationError, match="OPENAI_UPSTREAM: give an address"):
        settings(openai_upstream=url)


def test_a_providers_key_that_is_not_there_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PROVIDER_KEY", raising=False)
    with pytest.raises(ValidationError, match="no variable PROVIDER_KEY"):
        settings(openai_upstream="https://x/v1", openai_upstream_key_env="PROVIDER_KEY")


def test_a_providers_key_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROVIDER_KEY", "secret")
    given = settings(openai_upstream="https://x/v1", openai_upstream_key_env="PROVIDER_KEY")
    assert given.openai_upstream_key == "secret"


def test_a_provider_may_need_no_key() -> None:
    assert settings(openai_upstream="http://127.0.0.1:11434/v1").openai_upstream_key is None
