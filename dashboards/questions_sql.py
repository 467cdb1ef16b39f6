"""SQL of questions: topics, flips of perturbed questions, consistency of repeated ones."""

from ragtide.dashboards.interval_sql import share_interval
from ragtide.dashboards.sql import APP, RUN, Tables
from ragtide.dashboards.variable_sql import in_variable, value
from ragtide.drift import sql
from ragtide.drift.windows import STREAMED_RUNS

OTHERS = "all others"
_TOPICS = 20  # that a graph can show
_HERE = f"{APP} AND $__timeFilter(time) AND {in_variable('environment')}"


def by_topic(tables: Tables) -> str:
    """Questions over time by topic: those that most are of, and the rest together; none that was not placed."""
    placed = f"{tables.name('embeddings')} FINAL WHERE {RUN} AND topic != '' AND {_HERE}"
    most = f"SELECT topic FROM {placed} GROUP BY topic ORDER BY count() DESC, topic LIMIT {_TOPICS}"
    named = f"SELECT time AS at, if(topic IN ({most}), topic, '{OTHERS}') AS name FROM {placed}"
    counted = f"SELECT $__timeInterval(at) AS time, name, count() AS questions FROM ({named})"
    return f"{counted} GROUP BY time, name ORDER BY time, name"


def flip_rates(tables: Tables) -> str:
    """By metric and sequence of techniques, the share of pairs that flipped with its interval (Wilson); surest first.

    Pairs of which one has no comparable score are none. Empty where nothing was perturbed.
    """
    counted = (
        "SELECT metric, techniques, countIf(outcome != 'unknown') AS n, countIf(outcome = 'worse') AS worse, "
        "countIf(outcome = 'better') AS better, countIf(outcome = 'unknown') AS unknown, "
        f"(worse + better) / nullIf(n, 0) AS rate {_flips(tables)} GROUP BY metric, techniques"
    )
    return (
        f"SELECT metric, techniques, n AS pairs, rate AS `flip rate`, {_interval()}, "
        f"worse AS `pass to fail`, better AS `fail to pass`, unknown AS `not comparable` FROM ({counted}) "
        "ORDER BY `at least` DESC NULLS LAST, metric, techniques LIMIT 500"
    )


def newest_flips(tables: Tables) -> str:
    """The newest pairs that flipped: which way, both values, and the ids of both traces."""
    return (
        "SELECT time, metric, techniques, if(outcome = 'worse', 'pass to fail', 'fail to pass') AS flip, "
        "original_value AS `value of original`, value AS `value of perturbed`, original_id AS original, "
        f"trace_id AS perturbed, topic {_flips(tables)} AND outcome IN ('worse', 'better') "
        "ORDER BY time DESC, metric, perturbed LIMIT 200"
    )


def consistency(tables: Tables) -> str:
    """By metric, model and environment the share of inconsistent questions at the newest look; surest first."""
    newest = f"SELECT *, questions AS n, inconsistent / nullIf(n, 0) AS rate FROM ({_newest_runs(tables)})"
    return (
        f"SELECT metric, model, environment, questions, answers, rate AS inconsistent, {_interval()}, "
        f"allowed AS limit, time AS `looked at` FROM ({newest}) "
        "ORDER BY `at least` DESC NULLS LAST, metric, model, environment LIMIT 500"
    )


def answer_conflicts(tables: Tables) -> str:
    """Answers to the same question that differ, of the newest looks: by what, and the ids of both traces."""
    return (
        "SELECT time AS `looked at`, metric, model, environment, pair.1 AS `differ by`, pair.2 AS `at odds`, "
        f"pair.3 AS other FROM ({_newest_runs(tables)}) ARRAY JOIN pairs AS pair "
        "ORDER BY metric, model, environment, `at odds` LIMIT 200"
    )


def _newest_runs(tables: Tables) -> str:
    source = _streamed(tables, "repeated_questions")
    return f"SELECT * {source} ORDER BY time DESC LIMIT 1 BY environment, model, metric"


def _flips(tables: Tables) -> str:
    return _streamed(tables, "flips")


def _streamed(tables: Tables, table: str) -> str:
    """FROM and WHERE, of a table that is of live traces and probes."""
    streamed = f"{value('run')} IN {sql.texts(STREAMED_RUNS)}"
    return f"FROM {tables.name(table)} FINAL WHERE {streamed} AND {_HERE} AND {in_variable('model')}"


def _interval() -> str:
    """Two columns: the interval of a `rate` of `n`."""
    low, high = share_interval("rate", "n")
    return f"{low} AS `at least`, {high} AS `at most`"
