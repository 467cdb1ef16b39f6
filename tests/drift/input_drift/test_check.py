"""The job on the real tables: problems open with what an operator needs, survive a restart, and end."""

import json
from datetime import UTC, datetime, timedelta

import pytest
from click.testing import CliRunner, Result

from benchmarks.questions.world import DAY_S, HOUR_S, World, steady
from ragtide.drift.detection_settings import AppDrift
from ragtide.drift.input_drift import reference as references
from ragtide.drift.input_drift.check import InputDriftCheck, InputDriftResult
from ragtide.drift.input_drift.messages import QUESTION_METRIC
from ragtide.drift.input_drift.source import ClickHouseQuestionStore, QuestionSource
from ragtide.drift.leadership import elect
from ragtide.drift.problems.model import Problem
from ragtide.drift.problems.operator_actions import accept
from ragtide.drift.problems.store import load_problems
from ragtide.drift.settings import DriftSettings, RuleSettings, WindowSettings
from ragtide.drift.stats import calendar
from ragtide.drift.windows.watermark import WatermarkRow
from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.rows import DirtyRow, EmbeddingRow, ProgressRow
from ragtide.stream.cli import main
from tests.infra.fresh_database import reached

pytestmark = pytest.mark.clickhouse
TODAY = calendar.floor(datetime.now(UTC).timestamp(), DAY_S)
START = TODAY - (TODAY // DAY_S + 3) % 7 * DAY_S - 7 * DAY_S  # Monday of last week: what is older than 30 days expires
FIRST = START - 8 * DAY_S
CHANGED = START + DAY_S
BACK = CHANGED + DAY_S
NOON = CHANGED + DAY_S // 2
SETTINGS = DriftSettings(history_days=8, apps={"calm": AppDrift(margin=30)})
RULES = RuleSettings(update_every_s=0)


def store(
    database: Database, app: str, world: World, first: int, end: int, run_id: str = "live", encoder: str = "e@1"
) -> None:
    asked = world.sample(QuestionSource(app, "prod", "e@1"), first, end, HOUR_S, 100)
    rows = [
        EmbeddingRow(
            run_id,
            app,
            "prod",
            calendar.utc(int(at)),
            id_,
            1,
            encoder,
            vector.tolist(),
            "refunds" if id_.startswith("new") else "other",
        )
        for at, id_, vector in zip(asked.at, asked.trace_ids, asked.vectors, strict=True)
    ]
    database.insert("embeddings", rows)


def world(seed: int, until: int) -> World:
    """Half of what is asked is of a new topic, from CHANGED on until then."""
    return World(
        20 + seed,  # found by trial: with so few questions not every seed's change is told within the hours looked at
        lambda second: 0.5 if CHANGED <= START + second < until else 0.0,
        an_hour=25,
        dimension=16,
        topics=5,
        start=START,
    )


def look(database: Database, until: int, settings: DriftSettings = SETTINGS) -> InputDriftResult:
    """As a new leader looks, once lanes have closed what lies before."""
    at = calendar.utc(until)
    database.insert("watermarks", [WatermarkRow(lane, "t", at) for lane in ("fast", "model")])
    database.insert("progress", [ProgressRow(lane, "t", 0, "w", at, 1, 0) for lane in ("fast", "model")])
    term = elect(database, f"leader at {until}")
    return InputDriftCheck(database, settings, RULES, WindowSettings(), term).run(datetime.now(UTC))


def told(found: InputDriftResult) -> list[str]:
    return [f"{event.event} {event.app}" for event in found.events]


def problems(database: Database) -> dict[str, Problem]:
    return {one.app: one for one in load_problems(database)}


def test_a_problem_opens_says_what_is_asked_and_ends(database: Database) -> None:
    comes_and_goes, stays = world(1, BACK), world(2, START + 99 * DAY_S)
    for app, one in (("bank", stays), ("calm", stays), ("shop", comes_and_goes)):
        store(database, app, one, FIRST, START + 3 * DAY_S + HOUR_S)
    store(database, "shop", world(3, FIRST), FIRST, START, run_id="replay")
    store(database, "young", World(4, steady, an_hour=25, dimension=16, start=START), START - HOUR_S, START + DAY_S)

    first = look(database, START + 6 * HOUR_S)
    assert (first.applications, told(first)) == (4, [])
    assert first.warming_up == {"young": "less than a day of history"}
    assert told(look(database, CHANGED)) == []

    assert told(look(database, NOON)) == ["opened bank", "opened shop"], (
        "so large a change is nobody's business of calm"
    )
    shop = problems(database)["shop"]
    assert (shop.aspect, shop.metric, shop.kinds) == ("inputs", "inputs.question_meaning", ("input_drift",))
    assert (shop.type, shop.code, shop.severity) == ("data_quality", "P0101 Data drift", "critical")
    assert shop.description.startswith("shop (prod): users' questions since")
    assert "A classifier separates new from old questions in" in shop.description
    assert "of pairs" in shop.description
    assert len(shop.examples) == 10
    assert all(id_.startswith("new") for id_ in shop.examples)
    said = shop.attributes
    assert 0.55 < said["low"] < said["value"] < said["high"] < 1
    assert (said["encoder"], said["margin"]) == ("e@1", 0.02)
    assert any(one["name"] in ("questions about refunds", "questions unlike all before") for one in said["groups"])
    assert all(one["now"] > one["before"] or "refunds" not in one["name"] for one in said["groups"])
    assert datetime.fromisoformat(said["since"]) - calendar.utc(CHANGED) < timedelta(hours=2)

    before = references.load_states(database)
    assert told(look(database, NOON)) == [], "another leader sees what is known already"
    assert references.load_states(database).keys() == before.keys()

    accept(database, problems(database)["bank"], "ada", datetime.now(UTC), "the spring campaign")
    look(database, START + 3 * DAY_S + HOUR_S)
    after = problems(database)
    assert (after["shop"].state, after["bank"].state) == ("resolved", "resolved")
    assert after["bank"].episode == 1
    basis = {asked.app: one.reference.baseline_source for asked, one in references.load_states(database).items()}
    assert basis["shop"] == 0
    assert basis["bank"] == int(datetime.fromisoformat(after["bank"].attributes["since"]).timestamp())


def test_who_asks_no_more_has_no_problem_in_the_end(database: Database) -> None:
    for app in ("bank", "shop"):
        store(database, app, world(1, START + 99 * DAY_S), START - DAY_S, NOON)
    look(database, CHANGED)
    assert told(look(database, NOON)) == ["opened bank", "opened shop"]
    not_bank = SETTINGS.model_copy(update={"apps": {"bank": AppDrift(ignore=("inputs.question_meaning",))}})
    assert told(look(database, NOON, not_bank)) == ["resolved bank"]
    row, _ = database.rows("SELECT encoder, groups, length(days) AS days FROM question_references FINAL")
    assert row["encoder"] == "e@1"
    assert row["groups"] > 1
    assert row["days"] == 8, "of history; most of them without a question"
    assert told(look(database, NOON + 2 * DAY_S, not_bank)) == [], "nobody asked for a day: nothing is known of it"
    assert told(look(database, NOON + 8 * DAY_S, not_bank)) == ["resolved shop"]


def test_another_encoder_begins_anew_and_is_no_change(database: Database) -> None:
    """The problem is over, since nobody can tell any more; half of the questions are new, but by new vectors alone."""
    asked = world(1, START + 99 * DAY_S)
    store(database, "shop", asked, START - DAY_S, NOON)
    look(database, CHANGED)
    assert told(look(database, NOON)) == ["opened shop"]
    store(database, "shop", asked, NOON, BACK + DAY_S, encoder="e@2")
    assert told(look(database, NOON + HOUR_S)) == ["resolved shop"]
    assert told(look(database, BACK + HOUR_S)) == []
    last = look(database, BACK + DAY_S)
    assert (told(last), last.applications) == ([], 1)
    assert {one.encoder for one in references.load_states(database)} == {"e@2"}


def test_what_is_asked_can_be_pinned_and_shown(database: Database) -> None:
    store(database, "shop", world(1, START + 99 * DAY_S), START - DAY_S, BACK + DAY_S)
    database.insert("dirty_windows", [DirtyRow("live", "shop", "prod", "fast", calendar.utc(START), "t1")])
    environment = {"RAGTIDE_CONFIG": None, **reached(database)}

    def run(*words: str) -> Result:
        return CliRunner().invoke(main, ["baseline", *words], env=environment)

    none = run("show", "shop", QUESTION_METRIC)
    assert none.exit_code == 2
    assert "no questions of 'shop' are monitored as inputs.question_meaning" in none.output
    look(database, CHANGED)
    (one,) = json.loads(run("show", "shop", QUESTION_METRIC, "--json").stdout)
    assert one["rests_on"] == "history"
    assert one["channels"][-1]["name"] == "share of questions unlike all before"
    usual = [channel["usual"][0]["level"][10] for channel in one["channels"]]
    assert sum(usual) == pytest.approx(1, abs=0.01)
    last = [channel["last_day"][10] for channel in one["channels"]]
    assert sum(last) == pytest.approx(1)

    since, until = (f"{calendar.utc(at):%Y-%m-%dT%H:%MZ}" for at in (CHANGED, BACK + DAY_S // 2))
    pin = ("pin", "shop", "--metric", QUESTION_METRIC, "--why", "the campaign")
    empty = run(*pin, "--from", "2020-01-01", "--to", "2020-01-02")
    assert empty.exit_code == 2
    assert "has no vectors of questions of shop" in empty.output
    pinned = run(*pin, "--from", since, "--to", until)
    assert "1 of 1 monitored series" in pinned.output
    assert told(look(database, BACK + DAY_S)) == [], "half of it being new is how it should be"
    (one,) = json.loads(run("show", "shop", QUESTION_METRIC, "--json").stdout)
    assert one["rests_on"] == "the pinned reference"


def test_a_lot_is_bounded_and_the_same_however_it_is_drawn(database: Database) -> None:
    asked, one = QuestionSource("shop", "prod", "e@1"), World(1, an_hour=400, dimension=16, start=START)
    store(database, "shop", one, START, START + 4 * HOUR_S)
    store(database, "shop", one, START, START + HOUR_S)  # again: the same rows
    questions = ClickHouseQuestionStore(database)
    whole = questions.sample(asked, START, START + 4 * HOUR_S, HOUR_S, 7)
    assert [int(n) for n in ((whole.at - START) // HOUR_S).tolist()] == [hour for hour in range(4) for _ in range(7)]
    parts = [
        questions.sample(asked, START + hour * HOUR_S, START + (hour + 1) * HOUR_S, HOUR_S, 7) for hour in range(4)
    ]
    assert whole.trace_ids == tuple(id_ for part in parts for id_ in part.trace_ids)
    assert whole.vectors.shape == (28, 16)
    assert not len(questions.sample(asked._replace(encoder="e@2"), START, START + HOUR_S, HOUR_S, 7).at)
