"""All evaluators: one module each in `ragtide.evaluators.builtin`, those of plug-ins, and prompts of the settings."""

import math
import pkgutil
from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from inspect import isgeneratorfunction
from types import MappingProxyType, ModuleType
from typing import Any, get_args

from pydantic import ValidationError

from ragtide.evaluators.errors import ConfigError
from ragtide.evaluators.judge.byop import user_evaluators
from ragtide.evaluators.settings import EvaluatorSettings
from ragtide.evaluators.slugs import PATTERN, is_slug
from ragtide.evaluators.spec import Better, Domain, Evaluator, Lane, Method, Need, RuleKind

GROUP = "ragtide.evaluators"
_OF_MODELS = frozenset((Need.NLI, Need.CLASSIFIER, Need.LM))


def load(settings: EvaluatorSettings | None = None) -> Mapping[str, Evaluator]:
    """Return every evaluator by id, sorted. Raises `ConfigError` for a broken plug-in, a bad spec or a duplicate id.

    An entry point of the group `ragtide.evaluators` names an `Evaluator`, or a module that holds some. Each prompt in
    the settings (`evaluators.judge.byop`) is an evaluator too; without settings there is none.
    """
    found: dict[str, Evaluator] = {}
    origins: dict[str, str] = {}
    for origin, evaluator in (*_builtin(), *_plugins(entry_points(group=GROUP))):
        known = found.get(evaluator.id)
        if known is evaluator:
            continue
        if known is not None:
            raise ConfigError(
                f"two evaluators have the id {evaluator.id!r}: one in {origins[evaluator.id]}, one in {origin}; "
                "rename one or uninstall its package"
            )
        faults = spec_faults(evaluator)
        if faults:
            raise ConfigError(f"evaluator {evaluator.id!r} in {origin} is unsound: {'; '.join(faults)}")
        found[evaluator.id], origins[evaluator.id] = evaluator, origin
    for evaluator in user_evaluators(settings.judge.byop) if settings else ():
        if evaluator.id in found:
            raise ConfigError(
                f"evaluators.judge.byop.{evaluator.id}: there is an evaluator {evaluator.id!r} already, in "
                f"{origins[evaluator.id]}; give the prompt another name"
            )
        found[evaluator.id] = evaluator
    return MappingProxyType(dict(sorted(found.items())))


def spec_faults(evaluator: Evaluator) -> list[str]:
    """List the faults of an evaluator's spec, without running it."""
    faults = [] if is_slug(evaluator.id) else [f"its id must match {PATTERN}"]
    faults += ["version must be 1 or more, and fit 16 bits"] if not 1 <= evaluator.version < 1 << 16 else []
    faults += ["its function has no docstring, which is its description"] if not evaluator.description else []
    faults += _literal_fault("domain", evaluator.domain, Domain) + _literal_fault("method", evaluator.method, Method)
    faults += _literal_fault("lane", evaluator.own_lane, Lane) if evaluator.own_lane is not None else []
    if evaluator.method == "embedding" and Need.EMBEDDING not in evaluator.needs:
        faults.append("method embedding needs Need.EMBEDDING")
    if evaluator.embeds and Need.EMBEDDING not in evaluator.needs:
        faults.append("embeds needs Need.EMBEDDING")
    if (evaluator.judge is not None) != (Need.JUDGE in evaluator.needs):
        faults.append("an evaluator has judge and needs Need.JUDGE, or neither")
    if evaluator.judge is not None and not isgeneratorfunction(evaluator.judge.converse):
        faults.append("converse of judge must be a generator function: it yields calls")
    limits = evaluator.judge.limits if evaluator.judge is not None else ()
    faults += [
        f"limits of judge names {name!r}, which is no parameter"
        for name in limits
        if name not in evaluator.params.model_fields
    ]
    if evaluator.models is None and (evaluator.asks or evaluator.needs & _OF_MODELS):
        faults.append("an evaluator with asks, or that needs a model, must declare models")
    keys = [metric.key for metric in evaluator.metrics]
    faults += [f"metric {key!r} is declared twice" for key in sorted({key for key in keys if keys.count(key) > 1})]
    faults += [f"metric {key!r} must match {PATTERN}" for key in keys if not is_slug(key)]
    for metric in evaluator.metrics:
        faults += _literal_fault(f"better of metric {metric.key!r}", metric.better, Better)
        if metric.rule is not None:
            faults += _literal_fault(f"rule of metric {metric.key!r}", metric.rule, RuleKind)
        if math.isnan(metric.low) or math.isnan(metric.high) or metric.low >= metric.high:
            faults.append(f"metric {metric.key!r} has the range [{metric.low}, {metric.high}]")
        elif metric.binary and (metric.low, metric.high) != (0, 1):
            faults.append(f"metric {metric.key!r} is binary with the range [{metric.low}, {metric.high}], not [0, 1]")
        elif metric.threshold is not None and not metric.low <= metric.threshold <= metric.high:
            faults.append(f"metric {metric.key!r} has its threshold {metric.threshold} outside its range")
    faults += [
        f"off_until_set names {name!r}, which is no parameter"
        for name in evaluator.off_until_set
        if name not in evaluator.params.model_fields
    ]
    faults += _window_faults(evaluator)
    try:
        evaluator.params()
    except ValidationError:
        faults.append("every parameter must have a valid default")
    return faults


def _literal_fault(name: str, given: object, words: Any) -> list[str]:
    """Check a value against a Literal: plug-ins may not be type-checked."""
    valid = get_args(words)
    return [] if given in valid else [f"{name} must be one of {', '.join(valid)}"]


def _window_faults(evaluator: Evaluator) -> list[str]:
    per = [metric for metric in evaluator.metrics if metric.per]
    if (evaluator.method == "window") != (evaluator.combine is not None):
        return ["method window has combine, and no other method has"]
    if per and evaluator.combine is None:
        return [f"metric {per[0].key!r} has `per`, which is for method window"]
    faults = [f"metric {metric.key!r} has `per`: it cannot be primary" for metric in per if metric.primary]
    faults += [
        f"metric {m.key!r} has `per` {m.per}: they must match {PATTERN}" for m in per if not all(map(is_slug, m.per))
    ]
    if evaluator.combine is not None and evaluator.carrier is None:
        faults.append("method window needs a primary metric")
    return faults


def _builtin() -> Iterator[tuple[str, Evaluator]]:
    from ragtide.evaluators import builtin

    for module in pkgutil.iter_modules(builtin.__path__, "ragtide.evaluators.builtin."):
        yield from _evaluators_in(import_module(module.name), module.name)


def _plugins(found: Iterable[EntryPoint]) -> Iterator[tuple[str, Evaluator]]:
    for plugin in sorted(found, key=lambda plugin: (plugin.name, plugin.value)):
        package = f"{plugin.dist.name} {plugin.dist.version}" if plugin.dist else "an unknown package"
        origin = f"{plugin.value} (entry point {plugin.name!r} of {package})"
        try:
            loaded = plugin.load()
        except Exception as error:  # code of others: name the package, whatever it raises
            raise ConfigError(
                f"the evaluator plug-in {origin} cannot be loaded: {type(error).__name__}: {error}; "
                "fix it or uninstall its package"
            ) from error
        evaluators = [(origin, loaded)] if isinstance(loaded, Evaluator) else list(_evaluators_in(loaded, origin))
        if not evaluators:
            raise ConfigError(
                f"the evaluator plug-in {origin} holds no Evaluator; see ragtide.evaluators.spec.evaluator"
            )
        yield from evaluators


def _evaluators_in(module: object, origin: str) -> Iterator[tuple[str, Evaluator]]:
    values = vars(module).values() if isinstance(module, ModuleType) else ()
    return ((origin, value) for value in values if isinstance(value, Evaluator))
