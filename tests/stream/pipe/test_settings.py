"""Settings: one file, variables over it, every wrong name found, every value's origin told, no secret shown."""

import re
from pathlib import Path

import pytest
from pydantic import SecretStr

from ragtide.evaluators.errors import ConfigError
from ragtide.stream.settings.environment import leaves, variable_of
from ragtide.stream.settings.loader import Settings, entries, load, load_values
from ragtide.stream.settings.toml_lines import lines_of

SECRET = r"(^|_)(password|secret|token|key)$"  # names of settings that nobody else may read


def file(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "ragtide.toml"
    path.write_text(text)
    return path


def test_defaults_read_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAGTIDE_KAFKA__TOPICS", "elsewhere")
    assert Settings().kafka.topics == ("rag.traces",)


def test_variables_go_over_the_file_and_the_file_over_defaults(tmp_path: Path) -> None:
    path = file(tmp_path, '[kafka]\nbootstrap_servers = "file:1"\ngroup_prefix = "file"\n')
    loaded = load(path, {"RAGTIDE_KAFKA__GROUP_PREFIX": "variable"})
    assert loaded.settings.kafka.bootstrap_servers == "file:1"
    assert loaded.settings.kafka.group_prefix == "variable"
    assert loaded.origins["kafka.bootstrap_servers"] == f"{path}:2"
    assert loaded.origins["kafka.group_prefix"] == "RAGTIDE_KAFKA__GROUP_PREFIX"
    assert loaded.origins["kafka.topics"] == "default"


def test_changes_of_a_caller_go_over_all_and_keep_the_rest_of_a_table(tmp_path: Path) -> None:
    path = file(tmp_path, '[kafka]\ngroup_prefix = "file"\nlabels_topic = "file"\ntopics = ["a"]\n')
    changes = {"kafka": {"group_prefix": "caller", "topics": ["b", "c"]}, "evaluators": {"params": {"rouge": {}}}}
    loaded = load(path, {"RAGTIDE_KAFKA__GROUP_PREFIX": "variable"}, changes)
    kafka = loaded.settings.kafka
    assert (kafka.group_prefix, kafka.labels_topic, kafka.topics) == ("caller", "file", ("b", "c"))
    assert loaded.origins["kafka.group_prefix"] == "settings"
    assert loaded.origins["kafka.labels_topic"] == f"{path}:3"
    assert loaded.settings.evaluators.params == {"rouge": {}}
    with pytest.raises(ConfigError, match=r"^settings: kafka\.topic: no such setting; did you mean kafka\.topics\?$"):
        load(path, {}, {"kafka": {"topic": "x"}})


def test_changes_over_the_defaults_read_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file(tmp_path, '[kafka]\ngroup_prefix = "file"\n')
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RAGTIDE_KAFKA__LABELS_TOPIC", "variable")
    loaded = load_values({"kafka": {"topics": ["b"]}})
    assert loaded.settings == Settings.model_validate({"kafka": {"topics": ["b"]}})
    assert loaded.file is None
    with pytest.raises(ConfigError, match="settings: kafka: give a table"):
        load_values({"kafka": 7})


def test_the_file_is_named_by_option_then_variable_then_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert load(None, {}).file is None
    file(tmp_path, '[kafka]\ngroup_prefix = "folder"\n')
    assert load(None, {}).settings.kafka.group_prefix == "folder"
    named = tmp_path / "named.toml"
    named.write_text('[kafka]\ngroup_prefix = "named"\n')
    assert load(None, {"RAGTIDE_CONFIG": str(named)}).settings.kafka.group_prefix == "named"
    assert load(tmp_path / "ragtide.toml", {"RAGTIDE_CONFIG": str(named)}).settings.kafka.group_prefix == "folder"


def test_lists_and_tables_from_variables() -> None:
    loaded = load(
        None,
        {
            "RAGTIDE_KAFKA__TOPICS": "a, b",
            "RAGTIDE_EVALUATORS__DISABLED": '["rouge"]',
            "RAGTIDE_EVALUATORS__ENABLED": "inputs",
            "RAGTIDE_SAMPLING__LANES__JUDGE": "0.25",
            "RAGTIDE_EVALUATORS__PARAMS": '{"rouge": {"use_stemmer": true}}',
            "RAGTIDE_EVALUATORS__ENCODER__CACHE_BYTES": "1000",
        },
    )
    settings = loaded.settings
    assert settings.kafka.topics == ("a", "b")
    assert settings.evaluators.disabled == ("rouge",)
    assert settings.evaluators.enabled == ("inputs",)
    assert settings.sampling.lanes == {"judge": 0.25}
    assert settings.evaluators.params == {"rouge": {"use_stemmer": True}}
    assert settings.evaluators.encoder.cache_bytes == 1000
    assert loaded.origins["sampling.lanes"] == "RAGTIDE_SAMPLING__LANES__JUDGE"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            '[kafka]\nbootstap_servers = "x"\n',
            ":2: kafka.bootstap_servers: no such setting; did you mean kafka.bootstrap_servers?",
        ),
        (
            "[rules.apps.docs-bot]\nmin_sampel = 5\n",
            ":2: rules.apps.docs-bot.min_sampel: no such setting; did you mean rules.apps.docs-bot.min_sample?",
        ),
        (
            "[drift.apps.docs]\nhistory_days = 3\n",
            ":2: drift.apps.docs.history_days: no such setting; did you mean drift.history_days?",
        ),
        ("[windows.apps.docs]\nsegment = 3\n", "did you mean windows.apps.docs.segments?"),
        ("[clickhose]\n", "ragtide.toml:1: clickhose: no such setting; did you mean clickhouse?"),
        ('bootstrap_servers = "x"\n', "did you mean kafka.bootstrap_servers?"),
        ('[worker]\n\nblock_rows = "many"\n', "ragtide.toml:3: worker.block_rows: "),
        (
            "[worker]\nblock_rows = 0\n",
            ":2: worker.block_rows: Input should be greater than or equal to 1",
        ),
        ("kafka = 3\n", "ragtide.toml:1: kafka: give a table"),
        ("rules = 5\n", "ragtide.toml:1: rules: give a table"),
        ("[kafka]\ntopics = 5\n", 'ragtide.toml:2: kafka.topics: give a list, such as ["a", "b"]'),
        (
            "[evaluators.rouge]\nuse_stemmer = true\n",
            ": no such setting; parameters of an evaluator rouge stand in [evaluators.params.rouge]",
        ),
        ("[evaluators.encodr]\nthreads = 2\n", "did you mean evaluators.encoder?"),
        ('[kafka]\nbootstrap_servers = ",,"\n', ":2: kafka.bootstrap_servers: one of the servers is empty"),
        ('[kafka]\nbootstrap_servers = ""\n', ":2: kafka.bootstrap_servers: one of the servers is empty"),
        ('[kafka]\nbootstrap_servers = "a:9092, "\n', ":2: kafka.bootstrap_servers: one of the servers is empty"),
        ("[kafka\n", "not valid TOML: "),
        ("[privacy]\nhash_users = true\n", "privacy.hash_key"),
        *(
            (f"[retention]\n{name} = 7\n", f"retention.{name} must be at least a day more than ingest.max_age_s")
            for name in ("traces_days", "windows_minute_days")
        ),
        (
            "[ingest]\nmax_bytes = 8388609\n",
            "ingest.max_bytes (8388609) is more than kafka.max_record_bytes (8388608): none so large could be sent"
            "; set kafka.max_record_bytes = 8388609, or lower ingest.max_bytes",
        ),
        (
            "[kafka]\nmax_batch_bytes = 8388607\n",
            "kafka.max_batch_bytes = 8388607 is less than kafka.max_record_bytes = 8388608; raise the one",
        ),
        ("[rules]\nseverity_warning = 0.5\n", "rules: rules: severity_warning (0.5) is above severity_critical (0.25)"),
        (
            "[jobs]\ninsights_period_s = 0.5\n",
            ":2: jobs.insights_period_s: Input should be greater than or equal to 60",
        ),
        (
            "[[rules.overrides]]\nmetric = 'a.b'\nmax = inf\n",
            ":3: rules.overrides.0.max: Input should be a finite number",
        ),
        (
            "[retention]\nwindows_minute_days = 14\n",
            "retention.windows_minute_days must be at least a day more than drift.history_days (14): the windows that "
            "baselines are learned from would be deleted before; set retention.windows_minute_days = 15, or lower "
            "drift.history_days",
        ),
        ("[windows]\nbase_s = 3600\n[retention]\nwindows_hour_days = 9\n", "windows_hour_days must be at least a day"),
        ("[retention]\nwindows_day_days = 9\n", "retention.windows_day_days must be at least a day more than drift."),
        ("[kafka]\nheartbeat_s = 10\n", "kafka.heartbeat_s must be at most half of kafka.session_timeout_s"),
        (
            '[[rules.overrides]]\nmetric = "a.b"\nmaxx = 1\n',
            "rules.overrides.0.maxx: no such setting; did you mean rules.overrides.0.max?",
        ),
    ],
)
def test_a_mistake_in_the_file_is_named_with_its_line(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(file(tmp_path, text), {})
    assert said in str(caught.value)


def test_what_is_said_of_an_app_goes_before_the_defaults(tmp_path: Path) -> None:
    text = "[rules]\nmin_sample = 20\nk = 2\n[rules.apps.docs]\nmin_sample = 50\nmissing_after_s = 60\n"
    rules = load(file(tmp_path, text), {}).settings.rules
    docs = rules.of("docs")
    assert (docs.min_sample, docs.missing_after_s, docs.k, docs.severity_critical) == (50, 60, 2, 0.25)
    assert rules.of("shop") == rules


def test_so_it_is_with_windows_and_watching(tmp_path: Path) -> None:
    text = "[windows.segments]\ntenant = []\n[windows.apps.docs.segments]\ntopic = []\n[drift]\nignore = ['a.b']\n"
    settings = load(file(tmp_path, text + "[drift.apps.docs]\nignore = ['a.c']\nmargin = 2\n"), {}).settings
    assert settings.windows.of("docs").segments == {"topic": ()}
    assert settings.windows.of("shop").segments == {"tenant": ()}
    assert (settings.drift.of("docs").margin, settings.drift.of("shop").margin) == (2.0, 1.0)
    assert [settings.drift.monitors(app, "a.b") for app in ("docs", "shop")] == [True, False]
    assert settings.drift.ignored_everywhere == frozenset()


FRACTIONS = [path for path, field in leaves(Settings) if field.annotation in (float, float | None)]


@pytest.mark.parametrize("path", FRACTIONS, ids=".".join)
def test_what_is_no_finite_number_is_refused(path: tuple[str, ...]) -> None:
    for value in ("nan", "inf"):
        with pytest.raises(ConfigError, match=rf"{path[-1]}: Input should be a finite number"):
            load(None, {variable_of(path): value})


@pytest.mark.parametrize(
    "path", [path for path in FRACTIONS if path[0] in ("windows", "rules", "drift", "jobs", "topics")], ids=".".join
)
def test_no_job_is_told_to_wait_for_longer_than_times_can_say(path: tuple[str, ...]) -> None:
    with pytest.raises(ConfigError, match=path[-1]):
        load(None, {variable_of(path): "1e12"})


def test_every_mistake_is_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        load(file(tmp_path, "[worker]\nblock_rows = 0\nbatch_recods = 3\n"), {})
    assert len(str(caught.value).splitlines()) == 2


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("RAGTIDE_KAFKA__TOPIC", "did you mean RAGTIDE_KAFKA__TOPICS?"),
        ("RAGTIDE_KAFKA_TOPICS", "did you mean RAGTIDE_KAFKA__TOPICS?"),
        ("RAGTIDE_KAFKA__TOPICS__X", "did you mean RAGTIDE_KAFKA__TOPICS?"),
        ("RAGTIDE_CONFIGS", "did you mean RAGTIDE_CONFIG?"),
        ("RAGTIDE_KAFKA__ZZZ", "; valid: RAGTIDE_KAFKA__BOOTSTRAP_SERVERS, RAGTIDE_KAFKA__COMMIT_INTERVAL_S, "),
        ("RAGTIDE_FOO", "; `ragtide config` lists every name"),
    ],
)
def test_an_unknown_variable_is_an_error_that_names_the_nearest(name: str, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(None, {name: "x"})
    assert str(caught.value).startswith(f"{name}: no such setting")
    assert said in str(caught.value)


def test_a_wrong_value_is_told_with_its_variable() -> None:
    with pytest.raises(ConfigError, match=r"^RAGTIDE_WORKER__BLOCK_ROWS: worker\.block_rows: "):
        load(None, {"RAGTIDE_WORKER__BLOCK_ROWS": "many"})
    with pytest.raises(ConfigError, match=r"RAGTIDE_KAFKA__TOPICS: not valid JSON"):
        load(None, {"RAGTIDE_KAFKA__TOPICS": "[a"})
    with pytest.raises(ConfigError, match="RAGTIDE_SAMPLING__LANES: a table"):
        load(None, {"RAGTIDE_SAMPLING__LANES": "fast"})


def test_a_missing_file_is_told() -> None:
    with pytest.raises(ConfigError, match="no such settings file"):
        load(Path("/nowhere/ragtide.toml"), {})


def test_secrets_are_masked_and_never_in_errors(tmp_path: Path) -> None:
    path = file(tmp_path, '[clickhouse]\npassword = "hunter2"\ntimeout_s = "hunter2"\n')
    with pytest.raises(ConfigError) as caught:
        load(path, {})
    assert "hunter2" not in str(caught.value)
    loaded = load(None, {"RAGTIDE_CLICKHOUSE__PASSWORD": "hunter2", "RAGTIDE_GRAFANA__TOKEN": "hunter2"})
    shown = {entry.name: entry.value for entry in entries(loaded)}
    assert shown["clickhouse.password"] == shown["grafana.token"] == "********"
    assert "hunter2" not in repr(shown)
    assert shown["kafka.sasl_password"] == ""


@pytest.mark.parametrize(
    ("section", "instead"), [("clickhouse", "clickhouse.user and clickhouse.password"), ("grafana", "grafana.token")]
)
@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("http://u:p4ss@h:8123", "has a user or password in it; set {} instead"),
        ("u:p4ss@h", "has a user or password in it; set {} instead"),
        ("http://u:p4ss@\u2100", "is no URL"),
        ("http://[::1", "is no URL"),
    ],
)
def test_a_url_with_a_password_or_that_is_none_is_refused_and_not_told(
    section: str, instead: str, url: str, said: str
) -> None:
    variable = f"RAGTIDE_{section.upper()}__URL"
    with pytest.raises(ConfigError) as raised:
        load(None, {variable: url})
    assert str(raised.value) == f"{variable}: {section}.url: {said.format(instead)}"


def test_every_secret_is_of_the_type_that_is_masked() -> None:
    secret = {path: field.annotation for path, field in leaves(Settings) if re.search(SECRET, path[-1])}
    assert {("clickhouse", "password"), ("grafana", "token"), ("privacy", "hash_key")} <= secret.keys()
    assert set(secret.values()) == {SecretStr}


def test_every_setting_is_described_and_has_one_variable() -> None:
    paths = [path for path, _ in leaves(Settings)]
    assert len({variable_of(path) for path in paths}) == len(paths)
    assert not [path for path, field in leaves(Settings) if not field.description]


def test_lines_of_toml() -> None:
    text = 'top = 1\n[a]\nb = 2\n"c d" = 3\n\n[a.e]\nf.g = 4\n[[r]]\nm = 1\n[[r]]\nm = 2\n'
    assert lines_of(text) == {
        ("top",): 1,
        ("a",): 2,
        ("a", "b"): 3,
        ("a", "c d"): 4,
        ("a", "e"): 6,
        ("a", "e", "f", "g"): 7,
        ("r",): 8,
        ("r", "0"): 8,
        ("r", "0", "m"): 9,
        ("r", "1"): 10,
        ("r", "1", "m"): 11,
    }
