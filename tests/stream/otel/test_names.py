"""The table of names fits the trace, and the page of OpenTelemetry shows it."""

from typing import get_args

from docs.generate import PAGES
from ragtide.stream.ingest.fields import all_fields
from ragtide.stream.ingest.otel.documents import _READERS as DOCUMENT_READERS
from ragtide.stream.ingest.otel.known_names import PREFIXES, is_mapped
from ragtide.stream.ingest.otel.names import FIELDS, KINDS, SEEN
from ragtide.stream.ingest.otel.reading import READERS
from ragtide.stream.ingest.otel.source import Convention


def test_every_field_of_the_table_is_a_field_of_a_trace() -> None:
    known = {*all_fields(), "segments"}
    assert [path for path in FIELDS if path not in known and path.partition(".")[0] != "segments"] == []


def test_every_source_can_be_read_and_is_mapped() -> None:
    for path, sources in FIELDS.items():
        for source in sources:
            if path == "contexts":
                assert source.form in DOCUMENT_READERS, source
            assert is_mapped(source.attribute.partition(":")[0]), source
    assert {path: len(readers) for path, readers in READERS.items()} == {
        path: len(sources) for path, sources in FIELDS.items() if path != "contexts"
    }


def test_no_source_is_listed_twice() -> None:
    for path, sources in FIELDS.items():
        places = [(source.attribute, source.of) for source in sources]
        assert len(places) == len(set(places)), path


def test_every_convention_says_where_it_was_seen() -> None:
    used = {source.convention for sources in FIELDS.values() for source in sources} | {one for _, one, _ in KINDS}
    assert used == set(SEEN) == set(get_args(Convention))


def test_unknown_names_of_conventions_are_not_mapped() -> None:
    assert not is_mapped("gen_ai.brand.new")
    assert is_mapped("llm.input_messages.12.message.content")
    assert "gen_ai.brand.new".startswith(PREFIXES)


def test_the_page_shows_every_attribute_of_the_table() -> None:
    page = PAGES["opentelemetry.md"]()
    for sources in FIELDS.values():
        for source in sources:
            assert f"`{source.attribute}`" in page
