from typing import Any

import pytest

from ragtide.evaluators.errors import ConfigError
from ragtide.evaluators.outcome import NotApplicable
from ragtide.evaluators.text.html_page import is_blank
from ragtide.evaluators.trace import Artifact
from tests.evaluators.builtin.scoring import outcome, scored

REPORT = {"type": "object", "required": ["status"], "properties": {"status": {"enum": ["done", "failed"]}}}


def test_the_share_of_sound_artifacts() -> None:
    given = scored(
        "agent_sanity",
        artifacts=(
            Artifact("plan.md", "text/markdown", "1. Look it up."),
            Artifact("data.json", "application/json", '{"a": [1, 2]'),
            Artifact("chart.png", "image/png", size=20_480),
            Artifact("notes.txt", "text/plain", " \n"),
            Artifact("log.txt"),  # neither text nor size: not counted
        ),
    )
    assert given.metrics == {"agent_sanity": 0.5}
    assert given.parts == {"artifacts": 4.0, "empty": 1.0, "invalid_json": 1.0}
    assert [(place.field, place.start, place.kind) for place in given.evidence] == [
        ("artifacts", 1, "invalid_json"),
        ("artifacts", 3, "empty"),
    ]
    assert [finding.kind for finding in given.findings] == ["artifact_empty", "artifact_invalid_json"]


@pytest.mark.parametrize(
    ("artifact", "fault"),
    [
        (Artifact("a.txt", "text/plain", "text"), None),
        (Artifact("a.txt", "text/plain", ""), "empty"),
        (Artifact("a.txt", "text/plain", "", size=3), "empty"),
        (Artifact("a.bin", None, None, size=0), "empty"),
        (Artifact("a.bin", None, None, size=1), None),
        (Artifact(" ", "text/plain", "text"), "no_name"),
        (Artifact("a", "application/json; charset=utf-8", "[1"), "invalid_json"),
        (Artifact("a", "application/ld+json", "NaN"), "invalid_json"),
        (Artifact("a.json", "text/plain", "{}"), None),
        (Artifact("a.JSON", None, "{'a': 1}"), "invalid_json"),
        (Artifact("a.json", "text/html", "<p>not JSON, and says so"), None),
        (Artifact("a.jsonl", None, '{"a": 1}\n\n{"a": 2}\n'), None),
        (Artifact("a.jsonl", None, '{"a": 1}\n{"a": \n'), "invalid_json"),
        (Artifact("a.html", None, "<html><body><p>Hello</p></body></html>"), None),
        (Artifact("a.html", None, "<html><title>Report</title><body>&nbsp;</body></html>"), "blank_page"),
        (Artifact("a.pdf", "application/pdf", "page one\fpage two\f"), None),
        (Artifact("a.pdf", "application/pdf", "page one\f \n\fpage three\f"), "blank_page"),
        (Artifact("a.pdf", "application/pdf", None, size=9_000), None),
    ],
)
def test_what_makes_an_artifact_unsound(artifact: Artifact, fault: str | None) -> None:
    given = scored("agent_sanity", artifacts=(artifact,))
    assert given.metrics == {"agent_sanity": float(fault is None)}
    assert [place.kind for place in given.evidence] == ([fault] if fault else [])


@pytest.mark.parametrize(
    ("listing", "share"),
    [
        ("a.csv\nb.csv", 1.0),
        ("out/a.csv\n./b.csv\n", 1.0),
        ("a.csv\nlost.csv", 0.75),
        ("sub", 0.75),  # declared, and nowhere
    ],
)
def test_a_directory_has_the_files_it_declares(listing: str, share: float) -> None:
    files = (Artifact("out/a.csv", None, "1"), Artifact("out/b.csv", None, "2"), Artifact("lost.csv", None, "3"))
    for directory in (Artifact("out", "inode/directory", listing), Artifact("./out/", None, listing)):
        assert scored("agent_sanity", artifacts=(directory, *files)).metrics == {"agent_sanity": share}


@pytest.mark.parametrize(
    ("name", "text", "fault"),
    [
        ("report.json", '{"status": "done"}', None),
        ("report.json", '{"status": "unsure"}', "schema_violation"),
        ("report.json", "{}", "schema_violation"),
        ("runs/3/report.json", "{}", "schema_violation"),
        ("report.txt", "{}", "schema_violation"),  # a schema says that it is JSON
        ("report.txt", "done", "invalid_json"),
        ("steps.jsonl", '{"status": "done"}\n{"status": 1}', "schema_violation"),
        ("data.json", "{}", None),
    ],
)
def test_required_fields_and_allowed_values_come_from_schemas(name: str, text: str, fault: str | None) -> None:
    params = {"schemas": {"*report.*": REPORT, "steps.jsonl": REPORT}}
    given = scored("agent_sanity", params, artifacts=(Artifact(name, None, text),))
    assert [place.kind for place in given.evidence] == ([fault] if fault else [])


def test_a_schema_that_cannot_work_is_refused_at_start() -> None:
    with pytest.raises(ConfigError, match=r"evaluators\.params\.agent_sanity\.schemas: .*linear time"):
        outcome("agent_sanity", {"schemas": {"a.json": {"pattern": "(?=a)"}}}, artifacts=())


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({}, "missing_artifacts"),
        ({"artifacts": ()}, "no_artifacts"),
        ({"artifacts": (Artifact("a.txt"),)}, "artifacts_not_recorded"),
        ({"artifacts": (Artifact("a.json", None, "[" * 100_000),)}, "artifacts_not_recorded"),
    ],
)
def test_without_anything_to_judge_there_is_nothing_to_say(fields: dict[str, Any], reason: str) -> None:
    assert outcome("agent_sanity", answer="a", **fields) == NotApplicable(reason)


@pytest.mark.parametrize(
    ("html", "blank"),
    [
        ("", True),
        ("text", False),
        ("<p></p>", True),
        ("<p>&nbsp;&#160;</p>\u00a0", True),
        ("<p>&amp;</p>", False),
        ("<!-- text --><p></p>", True),
        ("<!-- text", True),
        ("<STYLE>p { color: red }</Style >", True),
        ("<style>p {}</style>text", False),
        ("<title>Report</title><body>", True),
        ("<IMG src=a.png>", False),
        ("<div id=chart></div><script>draw()</script>", False),
        ("<!doctype html><?xml?>", True),
        ("a < b", False),
        ("< 3", False),
        ("<p title='", True),
        ("</p></", True),
    ],
)
def test_a_page_is_blank_where_nothing_shows(html: str, blank: bool) -> None:
    assert is_blank(html) is blank


@pytest.mark.parametrize("html", ["<p>" * 300_000, "<!--" * 300_000, "<style>" * 150_000, "</p" * 300_000])
def test_hostile_pages_are_read_once(html: str) -> None:
    assert is_blank(html)
