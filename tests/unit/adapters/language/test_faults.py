import logging

import pytest

from schemas.models.language import Profile
from streams.adapters.language.faults import FaultKind, RedactingFilter, RetryPolicy, fault_of, redacted

SECRET = "the-whole-secret-of-this-test"
PROFILE = Profile(model="openai/any", api_key_env="ANY_KEY", timeout_s=3)


class Answer(Exception):
    """An error like LiteLLM's, with a status and the response's headers."""

    def __init__(self, status: int, words: str = "as told", retry_after: str | None = None) -> None:
        super().__init__(words)
        self.status_code = status
        self.litellm_response_headers = {} if retry_after is None else {"retry-after": retry_after}


class ContentPolicyViolationError(Answer):
    """Named like LiteLLM's."""


@pytest.mark.parametrize(
    ("error", "kind", "passes"),
    [
        (TimeoutError(), "timeout", True),
        (Answer(408), "timeout", True),
        (Answer(429), "rate_limit", True),
        (Answer(429, "Error code: insufficient_quota"), "quota", False),
        (Answer(500), "server", True),
        (Answer(529), "server", True),
        (ConnectionResetError(), "server", True),
        (Answer(400), "refused", False),
        (Answer(401), "credentials", False),
        (Answer(403), "credentials", False),
        (Answer(404), "not_found", False),
        (Answer(418), "refused", False),
        (ContentPolicyViolationError(400), "refused_text", False),
        (ValueError("no such provider"), "other", False),
    ],
)
def test_errors_are_classified_as_transient_or_not(error: Exception, kind: FaultKind, passes: bool) -> None:
    fault = fault_of(error, "default", PROFILE, ())
    assert fault.kind == kind
    assert fault.is_transient == passes


def test_message_names_the_profile_and_what_to_check() -> None:
    message = fault_of(Answer(401, "Incorrect key"), "fast", PROFILE, ()).message
    assert message == "the model openai/any (profile fast) refuses the credentials (401): Incorrect key; check ANY_KEY"


def test_repeated_secret_is_in_neither_message_nor_cause() -> None:
    fault = fault_of(Answer(401, f"Incorrect API key: {SECRET}, not sk-other1234"), "default", PROFILE, (SECRET,))
    for text in (fault.message, str(fault.cause), repr(fault.cause)):
        assert SECRET not in text
        assert "other1234" not in text


def test_refused_text_is_not_repeated() -> None:
    fault = fault_of(ContentPolicyViolationError(400, "flagged: my diary"), "default", PROFILE, ())
    assert "diary" not in fault.message + str(fault.cause)


@pytest.mark.parametrize(("header", "seconds"), [("7", 7), ("0.5", 0.5), ("soon", 0), ("-3", 0), ("inf", 0), (None, 0)])
def test_valid_retry_after_header_is_read(header: str | None, seconds: float) -> None:
    assert fault_of(Answer(429, retry_after=header), "default", PROFILE, ()).retry_after_s == seconds


def test_backoff_doubles_up_to_the_maximum_with_full_jitter() -> None:
    pacing, fault = RetryPolicy(initial_backoff_s=1, max_backoff_s=4), fault_of(Answer(500), "default", PROFILE, ())
    assert [pacing.backoff_s(fault, attempts, lambda: 1.0) for attempts in (1, 2, 3, 4)] == [1, 2, 4, 4]
    assert pacing.backoff_s(fault, 3, lambda: 0.25) == 1


def test_backoff_is_at_least_retry_after() -> None:
    fault = fault_of(Answer(429, retry_after="7"), "default", PROFILE, ())
    assert RetryPolicy().backoff_s(fault, 1, lambda: 0.0) == 7


def test_too_long_retry_after_is_not_retried() -> None:
    fault = fault_of(Answer(429, retry_after="60"), "default", PROFILE, ())
    assert not RetryPolicy().should_retry(fault, attempts=1, retries=5)
    assert RetryPolicy().exceeds_max_retry_after(fault)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("key sk-abc123def456 is wrong", "key sk-*** is wrong"),
        ("Incorrect API key provided: sk-proj-ab***********xyz.", "Incorrect API key provided: sk-***"),
        ("Authorization: Bearer abcdefgh12345", "Authorization: Bearer ***"),
        ("GET https://host/v1?key=AIzaSy123&alt=json", "GET https://host/v1?key=***&alt=json"),
        ("http://ana:pass@host/v1 is down", "http://***@host/v1 is down"),
        ("nothing to hide", "nothing to hide"),
    ],
)
def test_everything_that_looks_like_a_secret_is_masked(text: str, expected: str) -> None:
    assert redacted(text) == expected


def test_placeholder_for_a_key_is_not_masked() -> None:
    assert redacted("none of them answers", ["none"]) == "none of them answers"


def test_log_events_lose_secrets_and_tracebacks() -> None:
    record = logging.LogRecord("LiteLLM", logging.WARNING, "f", 1, "key %s", (SECRET,), None)
    record.exc_info = (ValueError, ValueError(SECRET), None)
    assert RedactingFilter([SECRET]).filter(record)
    assert logging.Formatter().format(record) == "key ***"
