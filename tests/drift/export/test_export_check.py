"""`ragtide check` tries the targets of scores."""

import re
import uuid

import pytest

from ragtide.stream.connectivity_checks import ConnectivityCheck, run_checks
from ragtide.stream.local.broker import EmbeddedBroker
from ragtide.stream.settings.loader import load
from tests.infra.ports import free_ports
from tests.infra.webhook_receiver import Answer, Receiver
from tests.stream.core.traffic import make_topics


def check(name: str, **variables: str) -> ConnectivityCheck:
    """The result of that check, with neither a broker nor ClickHouse unless the variables name them."""
    nowhere = f"127.0.0.1:{free_ports(1)}"
    named = {
        "RAGTIDE_KAFKA__BOOTSTRAP_SERVERS": nowhere,
        "RAGTIDE_CLICKHOUSE__URL": f"http://{nowhere}",
        **{f"RAGTIDE_{key}": value for key, value in variables.items()},
    }
    return next(one for one in run_checks(load(None, named)) if one.name == name)


@pytest.mark.parametrize(
    ("answer", "ok", "says"),
    [
        (Answer(), True, r"^http://127\.0\.0\.1:\d+ accepted an empty batch of logs; \d+ metrics are sent$"),
        (Answer(401), False, r"Check otel\.export\.headers and \.url"),
        (Answer(404), False, r"otel\.export\.url must be the whole URL"),
        (Answer(503), False, "answered 503.*is it running"),
        (Answer(400), None, "refuses an empty batch"),
    ],
)
def test_the_endpoint_gets_an_empty_batch(receiver: Receiver, answer: Answer, ok: bool | None, says: str) -> None:
    receiver.script.append(answer)
    found = check("otel.export", OTEL__EXPORT__URL=receiver.url)
    assert found.ok is ok
    assert re.search(says, found.message), found.message
    assert "top-secret-path" not in found.message
    assert len(receiver.calls) == 1


def test_a_misspelt_metric_is_found() -> None:
    found = check("otel.export", OTEL__EXPORT__SCORES_TOPIC="scores", OTEL__EXPORT__METRICS='["groundednes.*"]')
    assert found.ok is False
    assert "did you mean groundedness." in found.message


@pytest.mark.broker
def test_the_topic_must_exist(broker: EmbeddedBroker) -> None:
    topic = f"scores-{uuid.uuid4().hex[:8]}"
    named = {"KAFKA__BOOTSTRAP_SERVERS": broker.bootstrap, "OTEL__EXPORT__SCORES_TOPIC": topic}
    assert f"have no topic {topic}" in check("otel.export.scores_topic", **named).message
    make_topics(broker, {topic: 1})
    assert check("otel.export.scores_topic", **named).ok
