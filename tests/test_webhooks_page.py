"""docs/webhooks.md: its settings load, its receiver's code verifies messages, its example fits the schema."""

import json
import re
from pathlib import Path
from typing import Any, get_args

import pytest
from pydantic import SecretStr

from ragtide.drift.notify.notification import InsightType, ProblemType, notification_schema
from ragtide.drift.webhook_settings import Event, Webhook
from ragtide.evaluators.errors import ConfigError
from ragtide.sinks.settings import WebhookEndpoint
from ragtide.sinks.webhook import WebhookClient
from ragtide.stream.settings.loader import entries, load
from tests.infra.webhook_receiver import SECRET, receiving

PAGE = (Path(__file__).parents[1] / "docs" / "webhooks.md").read_text()
NOW = 1_614_265_330


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def test_its_settings_load_and_no_secret_is_shown(tmp_path: Path) -> None:
    file = tmp_path / "ragtide.toml"
    file.write_text("\n".join(blocks("toml")))
    loaded = load(file, {})
    assert [hook.name for hook in loaded.settings.webhooks] == ["pager", "search-team"]
    assert loaded.settings.kafka.state_topics == ("rag.problems", "rag.insights")
    (shown,) = (str(entry.value) for entry in entries(loaded) if entry.name == "webhooks")
    assert "whsec_" not in shown + repr(loaded.settings)
    assert "hooks.example.org" not in shown + repr(loaded.settings)


def test_every_setting_and_event_is_explained() -> None:
    table = PAGE[PAGE.index("| setting |") : PAGE.index("Metric and severity")]
    assert set(re.findall(r"`(\w+)`", "\n".join(row.split("|")[1] for row in table.splitlines() if row))) == set(
        Webhook.model_fields
    )
    assert all(f"`{event}`" in PAGE for event in (*get_args(Event), *get_args(ProblemType), *get_args(InsightType)))


def test_its_code_verifies_a_message_and_refuses_others() -> None:
    code: dict[str, Any] = {}
    exec(blocks("python")[0], code)
    new, old = SecretStr("a key of 16 bytes or more"), SecretStr(SECRET)
    with receiving() as receiver:
        hook = WebhookEndpoint(url=SecretStr(receiver.url), secret=new, previous_secret=old)
        WebhookClient(hook, "webhooks.pager", clock=lambda: NOW).post("m1", b'{"a": 1}')
        (call,) = receiver.calls
    for secret in (new, old):
        assert code["verify"](call.headers, call.body, secret.get_secret_value(), NOW + 200)
    assert not code["verify"](call.headers, call.body, SECRET, NOW + 400)
    assert not code["verify"](call.headers, call.body + b" ", SECRET, NOW)
    assert not code["verify"](call.headers | {"webhook-timestamp": str(NOW + 100)}, call.body, SECRET, NOW + 100)
    assert not code["verify"](call.headers | {"webhook-id": "m2"}, call.body, SECRET, NOW)
    assert not code["verify"](call.headers, call.body, "another key of 16 bytes", NOW)


def test_its_example_has_names_of_the_schema() -> None:
    example, schema = json.loads(blocks("json")[0]), notification_schema()
    assert set(example) == set(schema["properties"])
    assert set(example["data"]) <= set(schema["$defs"]["ProblemData"]["properties"])
    assert example["dataschema"] == schema["$id"]


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ('[[webhooks]]\nname = "a"\nurl = "https://a.example/s3cret"\n' * 2, "names must differ; twice: a"),
        ('[[webhooks]]\nname = "a"\nurl = "s3cret"\n', "give http:// or https:// and a host"),
        ('[[webhooks]]\nname = "a"\nurl = "https://a.example"\nsecret = "s3cret"\n', "is too short"),
        ('[[webhooks]]\nname = "a"\nurl = "https://a.example"\nevents = ["opened"]\n', "problem.opened"),
        (
            '[[webhooks]]\nname = "a"\nurl = "https://a.example"\nevents = ["insight.withdrawn"]\n',
            "insight.withdrawn needs insight.found",
        ),
        ('[[webhooks]]\nname = "A b"\nurl = "https://a.example"\n', "webhooks.0.name"),
        ('[kafka]\nproblems_topic = "rag.traces"\n', "need topics of their own"),
        ('[kafka]\nproblems_topic = "t"\ninsights_topic = "t"\n', "need topics of their own"),
    ],
)
def test_wrong_settings_say_what_is_wrong_and_no_secret(tmp_path: Path, settings: str, says: str) -> None:
    file = tmp_path / "ragtide.toml"
    file.write_text(settings)
    with pytest.raises(ConfigError) as raised:
        load(file, {})
    assert says in str(raised.value)
    assert "s3cret" not in str(raised.value)
