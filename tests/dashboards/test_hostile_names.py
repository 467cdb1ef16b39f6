"""Names that applications choose are data to every query of every dashboard, whatever signs they hold."""

import json
import re
from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import partial
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

import pytest

from ragtide.dashboards.alerting.build import alerting
from ragtide.dashboards.build import build
from ragtide.drift.windows.window_metrics import WindowRow
from ragtide.evaluators.registry import load
from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.clickhouse.embedded import EmbeddedClickHouse
from ragtide.sinks.rows import TextRow
from ragtide.stream.labels.rows import LabelRow
from tests.dashboards.lint import defaults, queries, references
from tests.dashboards.macros import FORMATS, VARIABLE, Choice, expanded, interpolate
from tests.dashboards.sample_details import METRIC, score, verdict
from tests.dashboards.sample_details import expected as expected_level
from tests.dashboards.sample_rows import NOON, REGISTRY, asked, event, flip, insight, repeated_questions, window
from tests.drift.world import World, score_row, text_row, trace_row
from tests.infra.fresh_database import fresh_database

PLAIN = "helpdesk"
SECRET = "what only the victim may read"
END = NOON + timedelta(minutes=10)
TEXTS = "{database}.trace_texts"
SIGNS = {
    "quotes": "it's \"quoted\" `so` \u2018and\u2019 '' \\'",
    "grafana": "${app} $app [[app]] ${app:raw} $__all",
    "macros": "$__timeFilter(start) $__conditionalAll(1, $app) $__fromTime $$ $& $' $`",
    "lists": "a,b{c,d}, {} ,",
    "address": "100%25 %27 %5C a+b&var-app=other?x=y#z",
    "comments": "*/ -- # /* ; DROP TABLE windows",
    "unicode": "Größe 東京 🦊 \u202e\u2028",
    "control": "one\x00two\nthree\ttwo\x7f",
    "braces": "{x:String}",
}
HOSTILE = SIGNS | {
    "union": f"x\\' UNION ALL SELECT now(), question, question, question, question FROM {TEXTS} -- ",
    "always true": "x\\') OR 1=1 -- ",
    "number": f"x\\' UNION ALL SELECT length(question) FROM {TEXTS} -- ",
    "trailing backslash": "ends in \\",
    "all signs": " ".join(SIGNS.values()),
    "long": "n'\\" * 2_000,
}
# Of all signs in one name every query is asked once: whatever changes one of them finds no row.
ASKED_FOR = [kind for kind in HOSTILE if kind not in SIGNS]
WHOLE = ("union", "trailing backslash")  # for these every single panel is asked for
Asked = Callable[[dict[str, Any]], Iterator[tuple[str, str, str]]]


def named(kind: str, database: Database) -> str:
    return HOSTILE[kind].replace(TEXTS, f"{database.name}.trace_texts")


def stored(name: str) -> Iterator[tuple[str, Any]]:
    """Rows of every table that dashboards read, the same for each name."""
    dimensions = {"app": name, "environment": name, "model": name}
    windows: list[WindowRow] = []
    for evaluator in REGISTRY.values():
        for metric in evaluator.metrics:
            for run in ("live", name):
                values = [0.25, 0.75]
                windows.append(window(f"{evaluator.id}.{metric.key}", NOON, values, run_id=run, **dimensions))
    windows.append(window(METRIC, NOON, [0.25], segment="tenant", segment_value=name, **dimensions))
    yield "windows", windows
    yield "scores", [score(1, "groundedness", {"groundedness": 0.25}, trace_id=name, **dimensions)]
    yield "verdicts", [verdict(1, 1, segment="tenant", segment_value=name, **dimensions)]
    yield "expected_levels", [expected_level(**dimensions)]
    standards = (name,)
    opened = event(name, "1", "opened", 1, NOON, standards=standards, examples=(name,), **dimensions)
    yield "problem_events", [opened]
    yield "insights", [insight()._replace(insight_id=name, app=name, environment=name, examples=(name,))]
    for run in ("live", name):
        evidence = json.dumps([{"field": "answer", "start": 0, "end": 1, "kind": "odd"}])
        made = score_row(
            NOON, name, {"groundedness": 0.5}, evaluator="groundedness", run_id=run, evidence=evidence, app=name
        )
        made = made._replace(environment=name, model=name, prompt_version=name, version=1)
        yield "scores", [made]
        yield "traces", [trace_row(made)]
        yield (
            "trace_texts",
            [TextRow(run, name, name, NOON, name, 1, "why?", "so", [name], ["c"], ["r"], "", "{}", "{}")],
        )
    yield "labels", [LabelRow(name, NOON, "rag.labels", 0, 0, 1, name, "", "", "", "up", None, name)]
    yield "flips", [flip("answer.good", 1, "typo", "worse", trace_id=name, original_id=name, **dimensions)]
    yield "repeated_questions", [repeated_questions("answer.good", 1, 4, 2, **dimensions)]
    yield "embeddings", [asked(1, 1, "csv", app=name, environment=name, trace_id=name)]


@pytest.fixture(scope="module")
def database(clickhouse_server: EmbeddedClickHouse) -> Iterator[Database]:
    """Holds the rows of a plain name, of every hostile one, and the texts of a victim."""
    kept = dict.fromkeys(("windows_minute_days", "embeddings_days", "traces_days", "texts_days"), 100_000)
    with fresh_database(clickhouse_server, **kept) as opened:
        for name in [PLAIN, HOSTILE["lists"], *(named(kind, opened) for kind in ASKED_FOR)]:
            for table, rows in stored(name):
                opened.insert(table, rows)
        world = World(opened)
        opened.insert("trace_texts", [text_row(score_row(world.at(0), "t", {"good": 0.1}), SECRET)])
        yield opened


def chosen_by(database: Database, documents: dict[str, Any], run: str, name: str) -> dict[str, Choice]:
    """Choose the name in every variable as a person does: where a query offers it, by the value beside the label."""
    chosen: dict[str, Choice] = {}
    for document in documents.values():
        chosen |= defaults(document)
    chosen |= {"run": run, "app": name, "trace_id": name, "problem": name, "metric": METRIC, "segment": "tenant"}
    for variable in ("environment", "model", "standard"):
        sql = dict(queries(documents["application"]))[f"variable {variable}"]
        rows = database.rows(expanded(sql, NOON, END, 60, chosen))
        offered = {list(row.values())[-1]: next(iter(row.values())) for row in rows}
        assert set(offered) == {name}
        chosen[variable] = [offered[name]]
    return chosen


def choices_of(document: dict[str, Any], chosen: dict[str, Choice]) -> dict[str, Choice]:
    """The same choices on that dashboard: names are encoded once more where a variable takes several."""
    several = {each["name"] for each in document["templating"]["list"] if each.get("multi")}
    fits = dict(chosen)
    if "app" in several:
        fits["app"] = [quote(str(chosen["app"]), safe="-_.~")]
    return fits


def shapes(documents: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    """One query of each shape: those of several metrics or evaluators differ in literals and names of columns only."""
    known = set()
    for board, document in documents.items():
        for where, sql in queries(document):
            shape = re.sub(r"'[\w.: ]*'|`[^`]*`|\b(sumIf|argMaxIf)\b[^`]*", "?", sql)
            if shape not in known:
                known.add(shape)
                yield board, where, sql


def everything(documents: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    for board, document in documents.items():
        for where, sql in queries(document):
            yield board, where, sql


def naming(documents: dict[str, Any], variable: str) -> Iterator[tuple[str, str, str]]:
    """One query of each shape that has the variable; to the others its value makes no difference."""
    for board, where, sql in shapes(documents):
        if variable in {match[1] or match[2] or match[4] for match in VARIABLE.finditer(sql)}:
            yield board, where, sql


NAMING_A_RUN = partial(naming, variable="run")


def answers(
    database: Database, documents: dict[str, Any], run: str, name: str, asked: Asked = shapes
) -> dict[str, str]:
    """What the dashboards show for the name, with the plain name in its place."""
    chosen = chosen_by(database, documents, run, name)
    shown = {}
    for board, where, sql in asked(documents):
        rows = database.rows(expanded(sql, NOON, END, 60, choices_of(documents[board], chosen)))
        rows += [one for row in rows if row.get("trace_link") for one in linked_trace(row["trace_link"])]
        assert SECRET not in json.dumps(rows, default=str), where
        # These offer every name: a list of all, and a dashboard without an application.
        if board != "pipeline" and not where.startswith(OF_EVERY_NAME.get(board, ("variable run", "variable app"))):
            shown[f"{board}: {where}"] = _renamed(rows, name)
    return shown


OF_EVERY_NAME = {
    "fleet": ("table", "state-timeline", "stat", "variable"),
    "problems": ("variable", "table Notifications", "state-timeline"),  # this shortens the name
}
UNNAMED = ("value", "time", "timeEnd", "trace_link", "stored at", "lasted", "link", "environment_value")


def linked_trace(link: str) -> list[dict[str, Any]]:
    """What the address of a trace's link asks for."""
    asked = parse_qs(urlsplit(link).query, strict_parsing=True)
    return [{"app": asked["var-app"], "run": asked["var-run"], "trace": asked["var-trace_id"]}]


def _renamed(rows: list[dict[str, Any]], name: str) -> str:
    """Rows as text, without encoded names and with the plain name for the hostile one."""
    plain = [{key: value for key, value in row.items() if key not in UNNAMED} for row in rows]
    return json.dumps(plain, default=str).replace(json.dumps(name)[1:-1], PLAIN)


@pytest.fixture(scope="module")
def documents(database: Database) -> dict[str, Any]:
    return build(load(), database=database.name)


@pytest.fixture(scope="module")
def wanted(database: Database, documents: dict[str, Any]) -> dict[str, str]:
    found = answers(database, documents, "live", PLAIN, everything)
    assert sum(rows != "[]" for rows in found.values()) > len(found) / 2
    return found


@pytest.fixture(scope="module")
def wanted_of_a_run(database: Database, documents: dict[str, Any]) -> dict[str, str]:
    return answers(database, documents, PLAIN, PLAIN, NAMING_A_RUN)


@pytest.mark.clickhouse
@pytest.mark.parametrize("kind", ASKED_FOR)
def test_every_panel_shows_a_hostile_name_its_own_rows_only(
    database: Database, documents: dict[str, Any], wanted: dict[str, str], kind: str
) -> None:
    name = named(kind, database)
    found = answers(database, documents, "live", name, everything if kind in WHOLE else shapes)
    assert {where: (rows, wanted[where]) for where, rows in found.items() if rows != wanted[where]} == {}


@pytest.mark.clickhouse
@pytest.mark.parametrize("kind", ["union", "trailing backslash", "all signs"])
def test_a_hostile_run_shows_its_own_rows_only(
    database: Database, documents: dict[str, Any], wanted_of_a_run: dict[str, str], kind: str
) -> None:
    name = named(kind, database)
    found = answers(database, documents, name, name, NAMING_A_RUN)
    assert len(found) > 50
    assert found == wanted_of_a_run


@pytest.mark.clickhouse
def test_several_names_with_commas_and_braces_are_told_apart(database: Database, documents: dict[str, Any]) -> None:
    """Of a multi-valued variable each name is its own, and a plain name may be given as it is in an address."""
    sql = dict(queries(documents["application"]))["stat Traces A"]
    asked_for: list[tuple[str, Choice, int | None]] = [
        (PLAIN, [PLAIN], 12),
        (PLAIN, PLAIN, 12),
        (PLAIN, ["a%2Cb%7Bc%2Cd%7D%2C%20%7B%7D%20%2C", PLAIN], 12),
        (HOSTILE["lists"], ["a%2Cb%7Bc%2Cd%7D%2C%20%7B%7D%20%2C", "other"], 12),
        (HOSTILE["lists"], ["a", "b"], None),
        (HOSTILE["lists"], ["$__all"], 12),
    ]
    base: dict[str, Choice] = {"run": "live", "resolution": "0", "model": ["$__all"]}
    for app, environments, traces in asked_for:
        chosen: dict[str, Choice] = {**base, "app": app, "environment": environments}
        rows = database.rows(expanded(sql, NOON, END, 60, chosen))
        assert rows == ([] if traces is None else [{"traces": traces}])


@pytest.mark.clickhouse
@pytest.mark.parametrize(
    "variable",
    ["resolution", "score", "app", "run", "environment", "model", "standard", "trace_id", "problem", "worst", "errors",
     "severity", "state", "type", "kind"],
)  # fmt: skip
def test_an_address_with_sql_in_a_variable_changes_no_query(
    database: Database, documents: dict[str, Any], variable: str
) -> None:
    attack = f"0) OR 1=1 UNION ALL SELECT question FROM {database.name}.trace_texts -- \\"
    chosen = chosen_by(database, documents, "live", PLAIN) | {variable: attack}
    asked = list(naming(documents, variable))
    assert asked
    for _board, where, sql in asked:
        rows = database.rows(expanded(sql, NOON, END, 60, chosen))
        rows += [one for row in rows if row.get("trace_link") for one in linked_trace(row["trace_link"])]
        assert SECRET not in json.dumps(rows, default=str), where


def test_queries_name_variables_in_the_safe_form_only() -> None:
    """Over every dashboard; alert rules have macros only, since Grafana's server expands no variable."""
    for board, document in build(load()).items():
        variables = {each["name"] for each in document["templating"]["list"]}
        for where, sql in queries(document):
            assert list(references(f"{board} {where}", sql, variables)) == []
    for group in alerting(load()).groups:
        for rule in group.rules:
            for sql in (rule.sql, rule.texts):
                assert [one[0] for one in VARIABLE.finditer(sql) if not one[0].startswith("$__")] == []


@pytest.mark.parametrize(
    "form", ["$app", "${app}", "[[app]]", "${app:raw}", "[[app:csv]]", "${app:singlequote}", "${app:sqlstring}",
             "'${app:percentencode}'", "decodeURLComponent('${app:queryparam}')", "${app:nosuch}", "${app.text:csv}"]
)  # fmt: skip
def test_any_other_form_is_found(form: str) -> None:
    assert list(references("here", f"SELECT {form}", {"app"}))


# As the tests of grafana/scenes have it.
FORMATTED = [
    ("singlequote", ["test", "test'2"], "'test','test\\'2'"),
    ("singlequote", "ends in \\", "'ends in \\'"),
    ("sqlstring", ["test", "test'2"], "'test','test''2'"),
    ("doublequote", ["test", 'test"2'], '"test","test\\"2"'),
    ("percentencode", ["foo()bar BAZ", "test2"], "%7Bfoo%28%29bar%20BAZ%2Ctest2%7D"),
    ("percentencode", "it's !*", "it%27s%20%21%2A"),
    ("csv", ["a", "b"], "a,b"),
    ("json", ["a", "b"], '["a", "b"]'),
    ("pipe", ["a", "b"], "a|b"),
    ("glob", ["a", "b"], "{a,b}"),
    ("nosuch", ["a", "b"], "{a,b}"),
    ("queryparam", ["a b", "c"], "var-app=a+b&var-app=c"),
]


@pytest.mark.parametrize(("form", "choice", "written"), FORMATTED)
def test_formats_are_written_as_grafana_writes_them(form: str, choice: Choice, written: str) -> None:
    assert interpolate(f"<${{app:{form}}}>", {"app": choice}) == f"<{written}>"
    assert form in FORMATS or form == "nosuch"
