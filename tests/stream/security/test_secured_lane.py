"""Lanes as processes against a broker that demands a user, a token or a certificate."""

import uuid
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.infra.secured_node import BYSTANDER, DESCRIBE, GROUP, PASSWORD, READ, TOPIC, Right, SecuredNode
from tests.infra.secured_tokens import SECRET, Answer
from tests.stream.core.traffic import Lane, committed, eventually, make_topics, read, send, trace

pytestmark = pytest.mark.kafka

WRONG = "wrong-password"


def topic_with(node: SecuredNode, traces: int) -> str:
    """Traces and a record that is none."""
    topic = f"rag.{uuid.uuid4().hex[:8]}"
    make_topics(node, {topic: 2, f"{topic}.dead": 1})
    send(node, topic, [(None, trace(f"t{n}")) for n in range(traces)] + [(b"key", b"not json")])
    return topic


def finishes(node: SecuredNode, lane: Lane) -> None:
    """All 50 traces, the record that is none, their offsets, and an end in order."""
    eventually(lambda: len(lane.traces()) == 50, 60, lane.logs)
    [letter] = read(node, lane.dead_topic, 1)
    assert (letter.key, letter.value) == (b"key", b"not json")
    eventually(lambda: sum(committed(node, lane.group, lane.topic, 2).values()) == 51, 20, lane.logs)
    assert lane.terminate() == 0, lane.logs()


def without_secrets(lane: Lane) -> str:
    told = lane.logs()
    assert not [secret for secret in (PASSWORD, SECRET, WRONG) if secret in told]
    return told


def test_lanes_work_by_password_and_by_certificate(secured: SecuredNode, tmp_path: Path) -> None:
    ways: dict[str, dict[str, Any]] = {"password": secured.by_user(), "certificate": secured.by_certificate()}
    with ExitStack() as stack:
        lanes = []
        for name, kafka in ways.items():
            (tmp_path / name).mkdir()
            lanes.append(Lane(secured, tmp_path / name, topic_with(secured, 50), kafka=kafka))
            stack.enter_context(lanes[-1])
        for lane in lanes:
            finishes(secured, lane)
            without_secrets(lane)


def test_a_lane_renews_its_token_and_outlives_the_token_endpoint(secured: SecuredNode, tmp_path: Path) -> None:
    """The broker closes a connection after 4 s, or once its token has run out."""
    tokens = secured.tokens
    tokens.life_s = 5
    topic = topic_with(secured, 50)
    with Lane(secured, tmp_path, topic, kafka=secured.by_token()) as lane:
        eventually(lambda: len(lane.traces()) == 50, 60, lane.logs)
        begun = len(tokens.asked)
        eventually(lambda: len(tokens.asked) >= begun + 2, 30, lane.logs)
        send(secured, topic, [(None, trace("renewed"))])
        eventually(lambda: "renewed" in lane.traces(), 30, lane.logs)
        tokens.answer = Answer(503)
        eventually(lambda: "NoToken" in lane.logs(), 30, lane.logs)
        send(secured, topic, [(None, trace("late")), (None, b"nor this")])
        tokens.answer = None
        eventually(lambda: "late" in lane.traces(), 60, lane.logs)
        assert len(read(secured, lane.dead_topic, 2)) == 2
        eventually(lambda: sum(committed(secured, lane.group, topic, 2).values()) == 54, 20, lane.logs)
        assert lane.terminate() == 0, lane.logs()
    assert sorted(set(lane.traces())) == sorted([f"t{n}" for n in range(50)] + ["renewed", "late"])
    assert "no token from" in without_secrets(lane)


def test_a_lane_with_a_wrong_password_says_so_and_ends(secured: SecuredNode, tmp_path: Path) -> None:
    with Lane(secured, tmp_path, topic_with(secured, 1), kafka={**secured.by_user(), "sasl_password": WRONG}) as lane:
        assert lane.process is not None
        assert lane.process.wait(30) == 2
    assert f"localhost:{secured.sasl_ssl} refuses user ragtide-worker with SCRAM-SHA-512" in without_secrets(lane)
    assert lane.traces() == []


def test_a_lane_whose_user_may_not_read_says_so_and_ends(secured: SecuredNode, tmp_path: Path) -> None:
    """aiokafka keeps such an answer for the next poll, to which Faust never comes: a lane waited and said nothing."""
    ungrouped, unread = topic_with(secured, 1), topic_with(secured, 1)
    readable, described = Right(TOPIC, ungrouped, READ), Right(TOPIC, unread, DESCRIBE)
    secured.allow(BYSTANDER, readable, described, Right(GROUP, f"{unread}-fast", READ))
    kafka = {**secured.by_user("PLAIN"), "sasl_username": BYSTANDER}
    for topic in (ungrouped, unread):
        (tmp_path / topic).mkdir()
    with (
        Lane(secured, tmp_path / ungrouped, ungrouped, kafka=kafka) as one,
        Lane(secured, tmp_path / unread, unread, kafka=kafka) as other,
    ):
        for lane, what in ((one, f"group {one.group}"), (other, f"topic {unread}")):
            assert lane.process is not None
            assert lane.process.wait(60) == 2, lane.logs()
            assert f"the brokers do not let this user read as {what}" in without_secrets(lane)
