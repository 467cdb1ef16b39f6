"""/metrics, /live and /ready over real HTTP, and a port that is taken."""

import re
import socket

import aiohttp
import pytest
from prometheus_client.parser import text_string_to_metric_families

from ragtide.evaluators.encoder import load_encoder
from ragtide.evaluators.encoder.model import find
from ragtide.evaluators.errors import ConfigError
from ragtide.evaluators.resources import Resources
from ragtide.evaluators.settings import EncoderSettings, EvaluatorSettings
from ragtide.stream.telemetry.health import LaneHealth
from ragtide.stream.telemetry.memory import show
from ragtide.stream.telemetry.registry import Telemetry
from ragtide.stream.telemetry.serving import TelemetryServer
from tests.stream.core.loop import in_loop


def server(telemetry: Telemetry, health: LaneHealth, port: int = 0) -> TelemetryServer:
    return TelemetryServer(telemetry, health, "127.0.0.1", port, setting="telemetry.port")


@in_loop
async def test_metrics_live_and_ready_are_served() -> None:
    telemetry, now = Telemetry(), [0.0]
    health = LaneHealth(lambda: now[0], live_after_s=10)
    telemetry.records.labels("fast").inc(3)
    served = server(telemetry, health)
    await served.start()
    async with aiohttp.ClientSession(f"http://127.0.0.1:{served.port}") as session:

        async def get(path: str) -> tuple[int, str]:
            async with session.get(path) as answer:
                return answer.status, await answer.text()

        async with session.get("/metrics") as answer:
            status, text, kind = answer.status, await answer.text(), answer.headers["Content-Type"]
        families = {family.name: family for family in text_string_to_metric_families(text)}
        assert status == 200
        assert re.fullmatch(r"text/plain; version=\d+\.\d+\.\d+; charset=utf-8", kind), "Prometheus refuses others"
        assert [s.value for s in families["ragtide_records"].samples if s.name.endswith("_total")] == [3]
        assert await get("/ready") == (503, "the worker is starting\n")
        health.waits_for("start", None)
        assert await get("/ready") == (200, "ok\n")
        health.observe({}, work_waits=True, away=False)
        assert (await get("/live"))[0] == 200
        now[0] = 11
        assert (await get("/live"))[0] == 503
    await served.stop()


@in_loop
async def test_a_port_in_use_is_said_with_the_setting_to_change() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(ConfigError, match=rf"telemetry.port: cannot listen on 127.0.0.1:{port}.*another port"):
            await server(Telemetry(), LaneHealth(lambda: 0.0, 60), port).start()


def test_every_metric_is_named_once_with_a_meaning_and_what_to_do() -> None:
    telemetry = Telemetry()
    names = [described.name for described in telemetry.described]
    assert len(names) == len(set(names))
    for described in telemetry.described:
        assert re.fullmatch(r"ragtide_[a-z_]+", described.name)
        assert described.meaning.endswith(".")
        assert described.action.endswith(".")
    declared = {family.name for family in telemetry.registry.collect() if family.name.startswith("ragtide_")}
    assert declared == {described.name.removesuffix("_total") for described in telemetry.described}


@pytest.mark.onnx
def test_memory_that_settings_bound_is_shown_as_it_is_when_read() -> None:
    settings = EvaluatorSettings(encoder=EncoderSettings(backend="onnx", cache_bytes=1_000_000))
    resources = Resources(load_encoder(settings.encoder), settings.encoder.cache_bytes, answers_bytes=500)
    telemetry = Telemetry()
    show(telemetry, "model", resources, settings)

    def told(name: str, **labels: str) -> float | None:
        return telemetry.registry.get_sample_value(f"ragtide_{name}", {"lane": "model", **labels})

    assert told("cache_bytes", cache="vectors") == 0
    resources.vectors(["one", "two"])
    assert told("cache_bytes", cache="vectors") == resources.cache.size_bytes > 2 * 384 * 4
    assert told("portion_limit_bytes") == 256 << 20
    assert told("cache_limit_bytes", cache="vectors") == 1_000_000
    assert told("cache_limit_bytes", cache="answers") == 500
    weights = find(settings.encoder).folder / "model.safetensors"
    assert told("model_bytes", model="all-MiniLM-L6-v2@53aa5117") == weights.stat().st_size
