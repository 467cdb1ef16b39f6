"""HTTP server of a process: /metrics for Prometheus, /live and /ready for orchestrators."""

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from ragtide.evaluators.errors import ConfigError
from ragtide.stream.telemetry.health import Health
from ragtide.stream.telemetry.registry import Telemetry


class TelemetryServer:
    """Serves on `host`:`port` between `start` and `stop`; `port` 0 picks a free one, see `port`."""

    def __init__(self, telemetry: Telemetry, health: Health, host: str, port: int, setting: str) -> None:
        self.port = port
        self._telemetry = telemetry
        self._health = health
        self._host = host
        self._setting = setting
        app = web.Application()
        app.add_routes(
            [web.get("/metrics", self._metrics), web.get("/live", self._live), web.get("/ready", self._ready)]
        )
        self._runner = web.AppRunner(app, access_log=None)

    async def start(self) -> None:
        """Listen; raise `ConfigError` if the port is in use."""
        await self._runner.setup()
        site = web.TCPSite(self._runner, self._host, self.port)
        try:
            await site.start()
        except OSError as error:
            await self._runner.cleanup()
            raise ConfigError(
                f"{self._setting}: cannot listen on {self._host}:{self.port}: {error.strerror or error}; "
                "stop the process that listens there, or choose another port (0: any free one)"
            ) from None
        self.port = self._runner.addresses[0][1]

    async def stop(self) -> None:
        """Stop listening."""
        await self._runner.cleanup()

    async def _metrics(self, request: web.Request) -> web.Response:
        return web.Response(
            body=generate_latest(self._telemetry.registry), headers={"Content-Type": CONTENT_TYPE_LATEST}
        )

    async def _live(self, request: web.Request) -> web.Response:
        return _answer(self._health.live())

    async def _ready(self, request: web.Request) -> web.Response:
        return _answer(self._health.ready())


def _answer(wrong: list[str]) -> web.Response:
    return web.Response(status=503 if wrong else 200, text="".join(f"{line}\n" for line in wrong or ["ok"]))
