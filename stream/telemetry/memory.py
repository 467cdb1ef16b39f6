"""Memory of a lane that settings limit: caches, working memory of models, weights, and GPUs."""

from functools import partial
from pathlib import Path

from ragtide.evaluators.encoder import settings_of_other
from ragtide.evaluators.encoder.model import find as find_encoder
from ragtide.evaluators.models.files import find
from ragtide.evaluators.resources import Resources
from ragtide.evaluators.runtime.card_memory import cards_in_use
from ragtide.evaluators.runtime.folders import weights_in
from ragtide.evaluators.settings import EvaluatorSettings
from ragtide.evaluators.spec import Lane
from ragtide.stream.telemetry.registry import Telemetry


def show(telemetry: Telemetry, lane: Lane, resources: Resources, settings: EvaluatorSettings) -> None:
    """Set the gauges; those of the caches are read at each scrape."""
    for name, cache in (("vectors", resources.cache), ("answers", resources.answers)):
        telemetry.cache_bytes.labels(lane, name).set_function(partial(getattr, cache, "size_bytes"))
        telemetry.cache_limit_bytes.labels(lane, name).set(cache.limit_bytes)
    telemetry.portion_bytes.labels(lane).set_function(partial(getattr, resources, "largest_portion_bytes"))
    telemetry.portion_limit_bytes.labels(lane).set(resources.portion_bytes)
    for card in cards_in_use():
        telemetry.card_bytes.labels(lane, card.name).set_function(partial(getattr, card, "taken_bytes"))
        telemetry.card_limit_bytes.labels(lane, card.name).set(card.limit_bytes)
    found = [(resources.encoder, settings.encoder)] if resources.encoder else []
    found += [(encoder, settings_of_other(name, settings.encoder)) for name, encoder in resources.encoders.items()]
    for encoder, own in found:
        telemetry.model_bytes.labels(lane, encoder.revision).set(_weights(find_encoder(own).folder))
    for ref, model in resources.models.items():
        telemetry.model_bytes.labels(lane, model.revision).set(_weights(find(ref.name, settings).folder))


def _weights(folder: Path) -> int:
    return sum(path.stat().st_size for path in weights_in(folder))
