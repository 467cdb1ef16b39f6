"""Settings of the built-in viewer. Only `ragtide.stream.settings.loader` reads them."""

from pydantic import BaseModel, Field, SecretStr, field_validator

_SHORTEST_TOKEN = 16


class ViewSettings(BaseModel, extra="forbid", frozen=True, allow_inf_nan=False):
    """Where `ragtide view` listens, who may look, and how much one query may cost."""

    listen: str = Field(
        default="127.0.0.1:8080",
        description="Address and port of the viewer, as host:port. Port 0 picks any free one. Other addresses than "
        "loopback need a token.",
    )
    token: SecretStr = Field(
        default=SecretStr(""),
        description="Token that the viewer asks for: 16 characters or more. If empty, the viewer asks on loopback for "
        "none, and on other addresses generates one and prints it.",
    )
    query_timeout_s: float = Field(default=20.0, gt=0, description="Longest time of one query, in seconds.")
    max_rows: int = Field(
        default=10_000, ge=100, le=1_000_000, description="Most rows of a panel. It says so if rows are left out."
    )
    max_bytes_to_read: int = Field(
        default=20 << 30, ge=1 << 20, description="Most bytes that one query may read from ClickHouse, uncompressed."
    )
    concurrent_queries: int = Field(default=6, ge=1, le=8, description="Most queries that run at a time.")

    @field_validator("listen")
    @classmethod
    def _check_listen(cls, listen: str) -> str:
        split_address(listen)
        return listen

    @field_validator("token")
    @classmethod
    def _check_token(cls, token: SecretStr) -> SecretStr:
        if 0 < len(token.get_secret_value()) < _SHORTEST_TOKEN:
            raise ValueError(f"has fewer than {_SHORTEST_TOKEN} characters: `openssl rand -hex 16` makes one")
        return token


def split_address(listen: str) -> tuple[str, int]:
    """Split host:port, or [IPv6]:port; raise ValueError if it is neither."""
    host, _, port = listen.rpartition(":")
    host = host.removeprefix("[").removesuffix("]") if host.startswith("[") and host.endswith("]") else host
    if not host or (":" in host and not listen.startswith("[")) or not port.isascii() or not port.isdigit():
        raise ValueError("give host:port, such as 127.0.0.1:8080 or [::1]:8080")
    if int(port) > 65535:
        raise ValueError(f"there is no port {port}")
    return host, int(port)
