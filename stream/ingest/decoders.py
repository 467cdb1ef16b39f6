"""Decoders by topic: those of ragtide, and those of installed packages.

A decoder makes a trace of a message's bytes, or raises `BadRecord`. The common checks of traces come afterwards.
"""

from collections.abc import Callable, Mapping
from importlib.metadata import entry_points

import msgspec

from ragtide.evaluators.errors import BadRecord, ConfigError
from ragtide.evaluators.slugs import is_slug
from ragtide.evaluators.trace import Trace
from ragtide.stream.ingest.adjustments import Adjustments
from ragtide.stream.ingest.canonical_json import decode_canonical
from ragtide.stream.ingest.decoding import Decoder
from ragtide.stream.settings.sections import CANONICAL, KafkaSettings

GROUP = "ragtide.decoders"
BUILT_IN: Mapping[str, Decoder] = {CANONICAL: decode_canonical}


class Decoders(dict[str, Decoder]):
    """Decoders by topic, looked up at a topic's first record. Topics without a setting hold canonical traces."""

    def __init__(self, kafka: KafkaSettings) -> None:
        super().__init__()
        self._entry_of = kafka.entry_of
        self._by_entry = {entry: _decoder(name) for entry, name in kafka.decoders.items()}

    def __missing__(self, topic: str) -> Decoder:
        decoder = self[topic] = self._by_entry.get(self._entry_of(topic) or "", decode_canonical)
        return decoder


def _decoder(name: str) -> Decoder:
    if built_in := BUILT_IN.get(name):
        return built_in
    plugins = entry_points(group=GROUP)
    if name not in plugins.names:
        known = ", ".join(sorted({*BUILT_IN, *plugins.names}))
        raise ConfigError(f"kafka.decoders: there is no decoder {name!r}; there are: {known}")
    try:
        loaded = plugins[name].load()
    except Exception as error:  # code of others: whatever it raises, say whose it is
        raise ConfigError(f"the decoder {name!r} cannot be loaded: {type(error).__name__}: {error}") from error
    if not callable(loaded):
        raise ConfigError(f"the decoder {name!r} is no function from bytes to a Trace")
    return _guard(name, loaded)


def _guard(name: str, decoder: Callable[[bytes], object]) -> Decoder:
    """Make a failure of third-party code a dead letter without its message, which may quote the record.

    The trace is written as canonical JSON and read like every other: types, limits and names are checked in one place.
    """

    def guarded(value: bytes, adjustments: Adjustments) -> Trace:
        try:
            trace = decoder(value)
            written = msgspec.json.encode(trace)
        except BadRecord as bad:
            if is_slug(bad.reason):
                raise
            raise BadRecord("decoder_failed", f"decoder {name}: the reason of its BadRecord is no slug") from bad
        except Exception as error:
            raise BadRecord("decoder_failed", f"decoder {name}: {type(error).__name__}") from error
        if not isinstance(trace, Trace):
            raise BadRecord("decoder_failed", f"decoder {name} made no Trace")
        return decode_canonical(written, adjustments)

    return guarded
