import pytest

from ragtide.evaluators.errors import ConfigError
from ragtide.evaluators.leaks import PERSONAL, SECRETS, leaks_of, scanner
from ragtide.evaluators.outcome import Evidence, Finding, NotApplicable
from tests.evaluators.builtin.scoring import chunks, outcome, scored

SLACK = "xo" + "xb-123456789012-123456789012-AbCdEfGhIjKlMnOpQrStUvW1"
KEY = (
    "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\nMIIEpAIBAAKCAQEAq3T0\nq8ZbVt1wZ9kq==\n"
    "-----END RSA PRIVATE KEY-----"
)


def found(text: str) -> list[tuple[str, str]]:
    leaks = leaks_of(text, scanner()(text), SECRETS)
    return [(hit.kind, text[hit.start : hit.end]) for hit in leaks.hits]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("password: hunter2!", [("password", "hunter2!")]),
        ('"password": "letmein"', [("password", "letmein")]),
        ("The admin password is P@ssw0rd123.", [("password", "P@ssw0rd123")]),
        ("passcode: 482913", [("password", "482913")]),
        ("\u043f\u0430\u0440\u043e\u043b\u044c: qwerty123", [("password", "qwerty123")]),
        ("login: admin / pass: admin123", [("password", "admin123")]),
        ("admin_token = 3f2a9c84b7d64e1f8a0b", [("api_key", "3f2a9c84b7d64e1f8a0b")]),
        ("postgres://app:s3cr3t@db.example.com/prod", [("url_credentials", "app:s3cr3t")]),
        ("redis://root:password@cache/0", [("url_credentials", "root:password")]),
        ("password: (&h5$q^)^g4Y", [("password", "(&h5$q^)^g4Y")]),
        ("jdbc:mysql://h/db?user=app&password=nNOQEbchwMma", [("password", "nNOQEbchwMma")]),
        ("Your verification code is 482913.", [("one_time_code", "482913")]),
        ("curl -u admin:secret99 https://example.com", [("authorization", "admin:secret99")]),
        (f"token={SLACK}", [("slack_token", SLACK)]),
        (KEY, [("private_key", KEY)]),
        (f'{{"private_key": "{KEY}"}}'.replace("\n", "\\n"), [("private_key", KEY.replace("\n", "\\n"))]),
        (
            "-----BEGIN EC PRIVATE KEY-----\nMHcCAQEEIIrYSSNdFNKh2",
            [("private_key", "-----BEGIN EC PRIVATE KEY-----\nMHcCAQEEIIrYSSNdFNKh2")],
        ),
    ],
)
def test_what_is_a_secret(text: str, expected: list[tuple[str, str]]) -> None:
    assert found(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        *(
            "password: str",
            "password = get_password()",
            "password: ********",
            "password=${DB_PASSWORD}",
            "password: <secret>",
        ),
        *(
            "my_password = other_password",
            "pass: 120, fail: 3",
            "passage: 12 words",
            '"PWD": "/home/bob"',
            "password = args[2]",
        ),
        *(
            "token = tokenizer.next_token()",
            "csrf_token: 8f14e45fceea167a5a36",
            "token = path_splits[0]",
            "max_tokens = 40960000000000",
        ),
        *(
            "api_key = os.environ['KEY']",
            "api_key: YOUR_API_KEY_123456789",
            "api_key = 'xxxxxxxxxxxxxxxx1'",
            "The token is expired.",
        ),
        *(
            "https://example.com:8080/@bob",
            "postgres://${USER}:${PASS}@db",
            "http://user:****@host",
            "git@github.com:a/b.git",
        ),
        *(
            "Authorization: Bearer <token>",
            "bearer of bad news",
            "basic authentication required",
            "-----BEGIN PUBLIC KEY-----",
        ),
        *(
            "XXXXX-XXXXX-XXXXX-XXXXX-XXXXX",
            "12345-12345-12345-12345-12345",
            "sk-learn-compatible-estimators-here",
            "eyJ",
        ),
    ],
)
def test_what_only_looks_like_one(text: str) -> None:
    assert found(text) == []


def test_a_leak_in_the_answer_fails_the_answer() -> None:
    given = scored("sensitive_data_leakage", answer="password: hunter2!", contexts=chunks("nothing here"))
    assert given.metrics == {"passes": 0.0, "failures": 1.0, "generation_failures": 1.0, "retrieval_failures": 0.0}
    assert given.evidence == (Evidence("answer", 10, 18, kind="password"),)
    assert given.findings == (Finding("leaked_password", "The answer holds a password."),)


def test_a_leak_in_a_chunk_fails_retrieval_unless_chunks_are_left_alone() -> None:
    contexts = chunks("nothing", f"use {SLACK}")
    given = scored("sensitive_data_leakage", answer="Ask IT.", contexts=contexts)
    assert given.metrics == {"passes": 0.0, "failures": 1.0, "generation_failures": 0.0, "retrieval_failures": 1.0}
    assert given.evidence == (Evidence("contexts", 4, 4 + len(SLACK), chunk_id="c2", kind="slack_token"),)
    alone = scored("sensitive_data_leakage", {"scan_contexts": False}, answer="Ask IT.", contexts=contexts)
    assert alone.metrics == {"passes": 1.0, "failures": 0.0, "generation_failures": 0.0}


def test_kinds_can_be_chosen_and_are_known() -> None:
    text = f"password: hunter2! {SLACK}"
    given = scored("sensitive_data_leakage", {"kinds": ["slack_token"]}, answer=text)
    assert [place.kind for place in given.evidence] == ["slack_token"]
    with pytest.raises(ConfigError, match="no such kind; valid: private_key"):
        outcome("sensitive_data_leakage", {"kinds": ["email"]}, answer="a")


def test_personal_data_is_no_secret_and_secrets_no_personal_data() -> None:
    assert not set(PERSONAL) & set(SECRETS)
    assert scored("sensitive_data_leakage", answer="bob@example.com").metrics["passes"] == 1.0
    assert scored("pii_leakage", answer="password: hunter2!").metrics["passes"] == 1.0


def test_what_is_too_long_is_not_called_clean() -> None:
    assert outcome("sensitive_data_leakage", answer="a " * 300_000) == NotApplicable("too_long")
