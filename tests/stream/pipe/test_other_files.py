"""A file that is no JSON lines is one error that names it and says what to do; gzip is unpacked."""

import gzip
import io
from pathlib import Path

import pytest
from click.testing import CliRunner

from ragtide.evaluators.errors import ConfigError
from ragtide.stream.cli import main
from ragtide.stream.ingest.json_lines import Line, read_file
from ragtide.stream.replay.file import FileSource

LINES = b'{"a": 1}\n\n{"a": 2}\n'
OTHERS = {
    "array": (b'[\n  {"a": 1},\n  {"a": 2}\n]\n', "begins with [ as a JSON array does; write one object per line: jq"),
    "array after a mark": (b"\xef\xbb\xbf [{}]", "begins with [ as a JSON array does"),
    "indented": (b'{\n  "a": 1\n}\n', "its first JSON object stands on several lines; write one object per line: jq"),
    "UTF-16": (LINES.decode().encode("utf-16"), "looks like UTF-16, not JSON lines; write it in UTF-8: iconv -f"),
    "UTF-16 without a mark": (LINES.decode().encode("utf-16-be"), "looks like UTF-16"),
    "zstd": (b"\x28\xb5\x2f\xfd123", "looks like zstd, not JSON lines; unpack it: zstd -d"),
    "Parquet": (b"PAR1\x15\x04", "looks like Parquet, not JSON lines; in Python, evaluate(pandas.read_parquet(FILE))"),
}
BY_NAME = pytest.mark.parametrize("kind", OTHERS)


def lines(value: bytes) -> list[Line]:
    return list(read_file(io.BytesIO(value), "traces", 100))


@BY_NAME
def test_other_formats_are_one_error(kind: str) -> None:
    value, words = OTHERS[kind]
    for form in (value, gzip.compress(value)):
        with pytest.raises(ConfigError) as refused:
            lines(form)
        assert str(refused.value).startswith(f"traces: {words}")
        assert "kafka.decoders" not in str(refused.value)


def test_gzip_is_unpacked() -> None:
    assert lines(gzip.compress(LINES)) == lines(LINES) == [Line(1, b'{"a": 1}'), Line(3, b'{"a": 2}')]


def test_a_damaged_gzip_says_where() -> None:
    with pytest.raises(ConfigError, match="traces: its gzip is damaged or cut short after line 3; pack it again"):
        lines(gzip.compress(LINES)[:-8])


@pytest.mark.parametrize("value", [b"", b"\n", b"{\n", b"{", b"oops\n[", b'{"a": [\n', b"\xff"])
def test_lines_that_are_wrong_one_by_one_are_for_decoding_to_refuse(value: bytes) -> None:
    assert [line.value for line in lines(value)] == [line for line in value.split(b"\n") if line]


@BY_NAME
def test_validate_and_a_replay_give_the_same_error(kind: str, tmp_path: Path) -> None:
    value, words = OTHERS[kind]
    file = tmp_path / "traces.jsonl"
    file.write_bytes(value)
    with pytest.raises(ConfigError) as refused:
        FileSource(file, batch_records=1, batch_bytes=1, max_line_bytes=100)
    assert str(refused.value).startswith(f"{file}: {words}")
    for command in ("validate", "evaluate"):
        found = CliRunner().invoke(main, [command, str(file)], env={"RAGTIDE_CONFIG": None})
        assert found.exit_code == 2
        assert found.output.splitlines()[-1].startswith(f"ragtide: {file}: {words}")
