"""Render rules and notifications from the settings: same settings, same documents."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, get_args

from ragtide.dashboards.alerting.burn_rules import BURN, BurnRules
from ragtide.dashboards.alerting.health_rules import HealthRules
from ragtide.dashboards.alerting.labels import LabelColumns
from ragtide.dashboards.alerting.links import Links
from ragtide.dashboards.alerting.notifications import Notifications, notifications
from ragtide.dashboards.alerting.problem_rule import PROBLEM_RULE, ProblemRule
from ragtide.dashboards.alerting.rule import RuleGroup, uid_of
from ragtide.dashboards.alerting_settings import GrafanaAlertingSettings, HealthRule
from ragtide.dashboards.pipeline_sql import PipelineQueries
from ragtide.dashboards.runbook_links import runbook_template
from ragtide.dashboards.settings import DEFAULT_PREFIX, DashboardSettings, Name
from ragtide.dashboards.sql import Tables
from ragtide.drift.routes import Route
from ragtide.drift.settings import JobSettings, RuleSettings, WindowSettings
from ragtide.drift.windows import metrics_by_name
from ragtide.evaluators.spec import Evaluator
from ragtide.sinks.alertmanager_settings import AlertmanagerSettings
from ragtide.sinks.settings import GrafanaSettings

_RULES = (*get_args(HealthRule), PROBLEM_RULE)


@dataclass(frozen=True, slots=True)
class Alerting:
    """Everything about alerts that a Grafana gets, in no form yet.

    Rules lie in a folder of their own: files name a folder by its title alone, so there must be one of that title.
    """

    org_id: int
    uid_prefix: str
    folder_uid: str
    folder_title: str
    data_source_uid: str
    every_s: int
    groups: tuple[RuleGroup, ...]
    notifications: Notifications
    group_names: tuple[str, ...]  # those without rules too
    whole_tree: bool

    def owns(self, rule_uid: str) -> bool:
        """Tell whether a rule of this uid is one that these settings, or earlier ones, made: others may add theirs."""
        named = {uid_of(self.uid_prefix, name) for name in _RULES}
        return rule_uid in named or rule_uid.startswith(f"{self.uid_prefix}{BURN}")


class Folder(NamedTuple):
    """The folder of the rules. Its uid is label `alert_source` of their alerts."""

    uid: str
    title: str


@dataclass(frozen=True, slots=True)
class AlertingContext:
    """Sections of the settings that alerts follow from."""

    database: str = "ragtide"
    settings: GrafanaAlertingSettings = field(default_factory=GrafanaAlertingSettings)
    names: DashboardSettings = field(default_factory=DashboardSettings)
    rules: RuleSettings = field(default_factory=RuleSettings)
    windows: WindowSettings = field(default_factory=WindowSettings)
    jobs: JobSettings = field(default_factory=JobSettings)
    routes: Sequence[Route] = ()
    alertmanager: AlertmanagerSettings = field(default_factory=AlertmanagerSettings)
    grafana: GrafanaSettings = field(default_factory=GrafanaSettings)

    @property
    def folder(self) -> Folder:
        """The folder: one of its own for each deployment with a prefix of its own, even if all else is the same."""
        names = self.names
        is_default = names.uid_prefix == DEFAULT_PREFIX
        uid = f"{names.folder_uid}-alerts" + ("" if is_default else f"-{names.uid_prefix}")
        title = f"{names.folder_title} alerts" + ("" if is_default else f" ({names.uid_prefix or 'no prefix'})")
        return Folder(uid_of("", uid), self.settings.folder_title or title)

    @property
    def raises_problems(self) -> bool:
        """Whether open problems are alerts in Grafana."""
        return self.settings.raises_problems(has_alertmanager=bool(self.alertmanager.urls))


def alerting(registry: Mapping[str, Evaluator], context: AlertingContext | None = None) -> Alerting:
    """Render the rules of these evaluators and the notifications. Raises `ConfigError` for labels that cannot be."""
    context = context or AlertingContext()
    settings, names, folder = context.settings, context.names, context.folder
    return Alerting(
        org_id=context.grafana.org_id,
        uid_prefix=names.uid_prefix,
        folder_uid=folder.uid,
        folder_title=folder.title,
        data_source_uid=names.data_source_uid,
        every_s=settings.every_s,
        groups=tuple(_groups(registry, context)),
        notifications=notifications(settings, names.uid_prefix, folder.uid),
        group_names=tuple(_group_names(names.uid_prefix).values()),
        whole_tree=settings.whole_tree,
    )


def _group_names(uid_prefix: str) -> dict[str, str]:
    name = uid_prefix.strip("-_") or "ragtide"
    return {"health": name, "problems": f"{name}-problems", "objectives": f"{name}-objectives"}


def _groups(registry: Mapping[str, Evaluator], context: AlertingContext) -> Iterator[RuleGroup]:
    """Yield groups with rules in them: about ragtide itself, about problems, and about objectives."""
    settings, names = context.settings, context.names
    tables = Tables(context.database, context.windows.all_sizes_s)
    shown = [name for name in get_args(Name) if name not in names.leave_out]
    runbook = runbook_template(context.alertmanager.runbook_url, context.grafana, names)
    links = Links(context.grafana.url, context.grafana.org_id, names.uid_prefix, runbook, shown)
    queries = PipelineQueries(tables, registry, context.windows.heartbeat_timeout_s)
    health = HealthRules(tables, queries, links, context.rules, settings, context.jobs.live_after_s)
    named = _group_names(names.uid_prefix)
    found = [RuleGroup(named["health"], tuple(health.all()))]
    if context.raises_problems:
        labels = LabelColumns(context.routes, context.alertmanager.labels)
        problems = ProblemRule(tables, labels, links, context.jobs.group_wait_s, not settings.burn_rates)
        found.append(RuleGroup(named["problems"], (problems.rule(),)))
        if settings.burn_rates:
            burns = BurnRules(tables, labels, links, context.rules, context.windows, metrics_by_name(registry))
            found.append(RuleGroup(named["objectives"], tuple(burns.all())))
    yield from (group for group in found if group.rules)
