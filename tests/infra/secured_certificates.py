"""Certificates for tests: of a broker, of clients that it knows and of one that it does not."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import trustme
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    KeySerializationEncryption,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

KEY_PASSWORD = "password-of-a-key"


class Certificates:
    """PEM files in a folder of their own. The broker's certificate is for `localhost`, and not for 127.0.0.1."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir()
        known, unknown = trustme.CA(), trustme.CA()
        self.ca = _write(directory / "ca.pem", known.cert_pem)
        self.other_ca = _write(directory / "other-ca.pem", unknown.cert_pem)
        broker = known.issue_cert("localhost")
        self.broker = _write(directory / "broker.pem", _key(broker), *broker.cert_chain_pems)
        client = known.issue_cert("worker@ragtide.test", common_name="ragtide-worker")
        self.client = _write(directory / "client.pem", *client.cert_chain_pems)
        self.client_key = _write(directory / "client.key", _key(client))
        self.locked_key = _write(directory / "locked.key", _key(client, KEY_PASSWORD))
        stranger = unknown.issue_cert("worker@ragtide.test", common_name="ragtide-worker")
        self.stranger = _write(directory / "stranger.pem", _key(stranger), *stranger.cert_chain_pems)
        before = datetime.now(UTC) - timedelta(days=2)
        old = known.issue_cert("localhost", not_before=before, not_after=before + timedelta(days=1))
        self.expired = _write(directory / "expired.pem", _key(old), *old.cert_chain_pems)


def _write(file: Path, *parts: trustme.Blob) -> Path:
    file.write_bytes(b"".join(part.bytes() for part in parts))
    return file


def _key(certificate: trustme.LeafCert, password: str = "") -> trustme.Blob:
    """As PKCS #8, which is what Kafka reads."""
    key = load_pem_private_key(certificate.private_key_pem.bytes(), None)
    lock: KeySerializationEncryption = BestAvailableEncryption(password.encode()) if password else NoEncryption()
    return trustme.Blob(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, lock))
