"""Which decoder reads the records of which topic: those of ragwatch by name, and what installed packages bring.

A decoder makes a trace of a message's bytes, or raises `BadRecord`; what every trace must be is checked afterwards.
"""

from collections.abc import Callable, Mapping
from importlib.metadata import entry_points

from evaluators.errors import BadRecord, ConfigError
from evaluators.trace import Trace
from stream.configuration.sections import CANONICAL, KafkaSettings
from stream.ingest.canonical import canonical
from stream.ingest.decoding import Decoder

GROUP = "ragwatch.decoders"
BUILT_IN: Mapping[str, Decoder] = {CANONICAL: canonical}


class Decoders(dict[str, Decoder]):
    """By topic, found when a topic is first seen; a topic that no setting names holds canonical traces."""

    def __init__(self, kafka: KafkaSettings) -> None:
        super().__init__()
        self._entry_of = kafka.entry_of
        self._named = {entry: _decoder(name) for entry, name in kafka.decoders.items()}

    def __missing__(self, topic: str) -> Decoder:
        decoder = self[topic] = self._named.get(self._entry_of(topic) or "", canonical)
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
    return _guarded(name, loaded)


def _guarded(name: str, decoder: Callable[[bytes], object]) -> Decoder:
    """A record that code of others fails on is a dead letter, and stops no lane; its message may quote the record."""

    def guarded(value: bytes) -> Trace:
        try:
            trace = decoder(value)
        except BadRecord:
            raise
        except Exception as error:
            raise BadRecord("decoder_failed", f"decoder {name}: {type(error).__name__}") from error
        if not isinstance(trace, Trace):
            raise BadRecord("decoder_failed", f"decoder {name} made no Trace")
        return trace

    return guarded
