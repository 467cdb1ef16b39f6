"""Our description of Alertmanager's API is valid, the real one answers as it says, and the example routes are sound."""

import json
import subprocess
from pathlib import Path

import pytest
import requests
import yaml
from openapi_core.testing import MockRequest, MockResponse
from openapi_spec_validator import OpenAPIV30SpecValidator

from tests.contracts.alertmanager_server import BASE, CONTRACT, contract
from tests.infra.alertmanager import AMTOOL, EXAMPLE, Receiver, config_for, running

needs_alertmanager = pytest.mark.alertmanager


def test_it_is_a_valid_description() -> None:
    OpenAPIV30SpecValidator(yaml.safe_load(CONTRACT.read_text())).validate()


@needs_alertmanager
def test_the_real_one_answers_as_described(tmp_path: Path) -> None:
    with Receiver() as receiver, running(tmp_path, config_for(receiver)) as alertmanager:
        alertmanager.silence("2126-01-01T00:00:00Z", app="shop")
        for path in ("/status", "/silences"):
            answer = requests.get(alertmanager.url + BASE + path, timeout=10)
            request = MockRequest("http://alertmanager.test", "GET", BASE + path)
            contract().validate_response(request, MockResponse(answer.content, answer.status_code))
        bad = [{"labels": {"a-b": "x"}}]
        answer = requests.post(f"{alertmanager.url}{BASE}/alerts", json=bad, timeout=10)
        assert (answer.status_code, "invalid label" in json.loads(answer.content)) == (400, True)


@needs_alertmanager
def test_amtool_accepts_the_example() -> None:
    done = subprocess.run([AMTOOL, "check-config", str(EXAMPLE)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@needs_alertmanager
@pytest.mark.parametrize(
    ("labels", "receiver"),
    [
        ("owner=search-team severity=warning", "search-team"),
        ("owner=search-team severity=critical", "search-team-pager"),
        ("owner=search-team severity=info", "digest"),
        ("owner=other-team severity=critical", "pager"),
        ("severity=critical", "pager"),
        ("severity=info", "digest"),
        ("severity=warning app=shop", "operators"),
    ],
)
def test_amtool_routes_by_owner_and_severity(labels: str, receiver: str) -> None:
    command = [AMTOOL, "config", "routes", "test", f"--config.file={EXAMPLE}", *labels.split()]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.split() == [receiver]
