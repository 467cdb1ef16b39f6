"""docs/judge.md: its settings are valid, and every setting of an endpoint and every failure is there."""

import re
import tomllib
from pathlib import Path

import pytest

from ragtide.evaluators import registry
from ragtide.evaluators.companions import check_companions
from ragtide.evaluators.judge.canaries import CANARY_APP
from ragtide.evaluators.judge.search_settings import SearchSettings
from ragtide.evaluators.judge.settings import CanarySettings, JudgeBatch, JudgeEndpoint
from ragtide.evaluators.judge.user_prompt import UserPrompt
from ragtide.evaluators.plan import prepare
from ragtide.stream.settings.loader import entries, load
from ragtide.stream.telemetry.registry import Telemetry

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "judge.md").read_text()
TABLES = re.findall(r"```toml\n(.+?)```", PAGE, re.DOTALL)


def test_every_setting_of_an_endpoint_and_of_a_prompt_is_on_the_page() -> None:
    rows = [line.split("|")[1] for line in PAGE.splitlines() if line.startswith("| `")]
    named = {name for row in rows for name in re.findall(r"`([a-z_]+)`", row)}
    models = (JudgeEndpoint, JudgeBatch, UserPrompt, SearchSettings, registry.load()["fact_check"].params)
    fields = {name for model in models for name in model.model_fields}
    assert named == fields | kinds() | metrics()


def metrics() -> set[str]:
    found = {f"{metric.name}_total" for metric in Telemetry().registry.collect()}
    return {name for name in found if name.startswith("ragtide_judge_")}


def kinds() -> set[str]:
    sources = (file.read_text() for file in (ROOT / "stream" / "judge").glob("*.py"))
    return {kind for text in sources for kind in re.findall(r'"(judge_[a-z]+)"', text)}


def test_settings_of_the_page_are_valid(tmp_path: Path) -> None:
    assert len(TABLES) == 12
    prompts = tomllib.loads(TABLES[5])
    assert prompts["evaluators"]["judge"]["prompts"].keys() == {"support"}
    file = tmp_path / "ragtide.toml"
    more = TABLES[0].replace("small", "large").partition("[sampling")[0]
    file.write_text("\n".join((TABLES[0], more, TABLES[1])))
    variable = re.search(r"export (RAGTIDE_\w+)=", PAGE)
    assert variable
    judge = load(file, {variable[1]: "sk-1"}).settings.evaluators.judge
    assert judge.endpoints["small"].api_key.get_secret_value() == "sk-1"
    assert (judge.endpoint_of("faithfulness"), judge.endpoint_of("safety_critic")) == ("small", "large")


def test_sampling_and_limits_of_the_page_are_valid(tmp_path: Path) -> None:
    file = tmp_path / "ragtide.toml"
    file.write_text("\n".join((TABLES[0].partition("[sampling")[0], *TABLES[2:5])))
    settings = load(file, {}).settings
    check_companions(registry.load(), settings.evaluators)
    assert settings.sampling.always.worse_than == {"support.support": 0.3}
    assert settings.sampling.unsure["support.support"].factor(0.5) == 4
    assert [rule.rate for rule in settings.sampling.rules] == [0.5]
    assert settings.sampling.highest_rate("judge") == 1  # 0.5 times 4, at most all
    assert settings.evaluators.judge.limit_of("shop").usd_per_day == 50
    assert settings.evaluators.judge.limit_of("docs").calls_per_minute == 300


def test_prompts_of_the_page_are_valid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "prompts").mkdir()
    (tmp_path / "prompts" / "refund.md").write_text("Does {answer} promise a refund?")
    (tmp_path / "ragtide.toml").write_text(TABLES[6])
    monkeypatch.chdir(tmp_path)
    known = registry.load(load(None, {}).settings.evaluators)
    assert known["polite"].required == ("question", "answer")
    assert known["promises_refund"].description == "Whether the answer promises a refund"


@pytest.mark.parametrize("table", TABLES[7:10])
def test_searches_of_the_page_are_valid_and_take_their_key_from_the_environment(tmp_path: Path, table: str) -> None:
    file = tmp_path / "ragtide.toml"
    file.write_text("\n".join((TABLES[0].partition("[sampling")[0], table)))
    variable = next(name for name in re.findall(r"export (RAGTIDE_\w+)=", PAGE) if "SEARCH" in name)
    loaded = load(file, {variable: "k-1"})
    search = loaded.settings.evaluators.judge.search
    assert search.api_key.get_secret_value() == "k-1"
    assert search.url is not None
    assert "k-1" not in repr(entries(loaded))
    if "fact_check" in table:
        plan = prepare(registry.load(), loaded.settings.evaluators, "judge", None)
        [one] = [one for one in plan.prepared if one.evaluator.id == "fact_check"]
        assert one.params.model_dump() == {
            "tools": ("search", "calculator"),
            "max_steps": 6,
            "max_records_per_hour": 50,
        }


def test_settings_of_canaries_of_the_page_are_valid_and_the_defaults_but_for_cost_and_file(tmp_path: Path) -> None:
    file = tmp_path / "ragtide.toml"
    file.write_text("\n".join((TABLES[0].partition("[sampling")[0], TABLES[10])))
    judge = load(file, {}).settings.evaluators.judge
    own = judge.canaries.model_dump(exclude={"enabled", "file"})
    assert own == CanarySettings().model_dump(exclude={"enabled", "file"})
    assert (judge.canaries.enabled, CanarySettings().enabled) == (True, False)
    assert judge.limit_of(CANARY_APP).usd_per_day == 1


def test_settings_of_batches_are_valid_and_their_defaults_are_those_of_the_page(tmp_path: Path) -> None:
    file = tmp_path / "ragtide.toml"
    file.write_text(TABLES[11])
    judge = load(file, {}).settings.evaluators.judge
    assert judge.cache.path
    assert judge.endpoints["small"].batch.max_wait_s == 43_200
    assert judge.endpoints["small"].at_batch_prices().output_usd_per_million == 0.8
    table = PAGE.partition("table `batch`:")[2].partition("\n\n`timeout_s`")[0]
    rows = [line.split("|")[1:3] for line in table.splitlines() if line.startswith("| `") and "_usd_" not in line]
    pairs = [pair for row in rows for pair in zip(*(re.findall(r"[\w/]+", cell) for cell in row), strict=True)]
    assert {name: str(getattr(JudgeBatch(), name)).removesuffix(".0") for name, _ in pairs} == dict(pairs)
    assert len(pairs) == len(JudgeBatch.model_fields) - 3


@pytest.mark.parametrize("secret", ["sk-very-secret"])
def test_no_secret_is_shown(tmp_path: Path, secret: str) -> None:
    file = tmp_path / "ragtide.toml"
    file.write_text(
        TABLES[0].replace("[sampling", f'api_key = "{secret}"\nheaders = {{ X-Key = "{secret}" }}\n[sampling')
    )
    shown = repr(entries(load(file, {})))
    assert "gpt-4.1-mini" in shown
    assert secret not in shown
