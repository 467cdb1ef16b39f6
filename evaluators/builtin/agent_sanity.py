from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Literal

from pydantic import BaseModel, Field

from ragtide.evaluators.outcome import Evidence, Finding, NotApplicable, Outcome, Scored
from ragtide.evaluators.spec import Metric, Shared, evaluator
from ragtide.evaluators.text.html_page import is_blank
from ragtide.evaluators.text.json_schemas import MOST_STEPS, JsonSchema, SoundSchemas, compile_schema
from ragtide.evaluators.text.json_text import NotJson, TooDeep, check, read
from ragtide.evaluators.trace import Artifact

MAX_EVIDENCE = 100  # unsound artifacts in the evidence
Form = Literal["directory", "html", "json", "json_lines", "pages", "other"]
FORMS: Mapping[str, Form] = {
    "application/json": "json",
    "application/jsonl": "json_lines",
    "application/pdf": "pages",
    "application/x-directory": "directory",
    "application/x-ndjson": "json_lines",
    "application/xhtml+xml": "html",
    "inode/directory": "directory",
    "text/html": "html",
    "geojson": "json",
    "htm": "html",
    "html": "html",
    "ipynb": "json",
    "json": "json",
    "jsonl": "json_lines",
    "ndjson": "json_lines",
    "pdf": "pages",
}
REMARKS = {
    "blank_page": "An artifact has a page on which nothing stands.",
    "empty": "An artifact is empty.",
    "invalid_json": "An artifact that should be JSON does not parse.",
    "missing_file": "A directory lacks a file that it declares.",
    "no_name": "An artifact has no name.",
    "schema_violation": "An artifact lacks a required field or holds a value that is not allowed.",
}


@dataclass(frozen=True, slots=True)
class Inputs:
    """The artifacts of the agent."""

    artifacts: tuple[Artifact, ...]


class Params(BaseModel, frozen=True, extra="forbid"):
    """Schemas of the artifacts."""

    schemas: SoundSchemas = Field(
        default={}, description="JSON Schema by artifact name. * in a name matches any text, ? any character."
    )


@evaluator(
    "agent_sanity",
    version=3,
    domain="generation",
    method="rule",
    inputs=Inputs,
    params=Params,
    metrics=[Metric("agent_sanity", threshold=0.75, primary=True, description="sound artifacts / artifacts")],
)
def agent_sanity(rows: Sequence[Inputs], shared: Shared, params: Params) -> Iterator[Outcome]:
    """Share of an agent's artifacts that are sound. A sound artifact has a name and is not empty. JSON and JSON Lines
    must parse and match the schema for the artifact's name, HTML and PDF pages must not be blank, and directories must
    contain the files they list. Artifacts without recorded text and size are not counted. The record is too_long if
    regular expressions or `uniqueItems` of the schemas would take too long.
    """
    schemas = {name: compile_schema(schema) for name, schema in params.schemas.items()}
    for row in rows:
        yield _evaluate(row.artifacts, schemas)


def _evaluate(artifacts: tuple[Artifact, ...], schemas: Mapping[str, JsonSchema]) -> Outcome:
    if not artifacts:
        return NotApplicable("no_artifacts")
    if sum(schema.steps(each.text or "") for each in artifacts for schema in _schemas_of(each, schemas)) > MOST_STEPS:
        return NotApplicable("too_long")
    names = {_path(artifact.name) for artifact in artifacts}
    faults: dict[int, str] = {}
    counted = 0
    for index, artifact in enumerate(artifacts):
        if artifact.text is None and artifact.size is None:
            continue
        try:
            fault = _fault(artifact, names, schemas)
        except TooDeep:
            continue
        counted += 1
        if fault is not None:
            faults[index] = fault
    if not counted:
        return NotApplicable("artifacts_not_recorded")
    by_fault = Counter(faults.values())
    return Scored(
        {"agent_sanity": (counted - len(faults)) / counted},
        parts={"artifacts": float(counted), **{fault: float(times) for fault, times in sorted(by_fault.items())}},
        evidence=tuple(
            Evidence("artifacts", index, index + 1, kind=fault) for index, fault in list(faults.items())[:MAX_EVIDENCE]
        ),
        findings=tuple(Finding(f"artifact_{fault}", REMARKS[fault]) for fault in sorted(by_fault)),
    )


def _fault(artifact: Artifact, names: Set[str], schemas: Mapping[str, JsonSchema]) -> str | None:
    """Return why the artifact is unsound, as a key of `REMARKS`, or None if it is sound."""
    text = artifact.text
    if not artifact.name.strip():
        return "no_name"
    if not text or not text.strip():
        return "empty" if text is not None or not artifact.size else None
    validators = _schemas_of(artifact, schemas)
    form = _form(artifact)
    if form == "json_lines":
        return next(filter(None, (_json(line, validators) for line in text.splitlines() if line.strip())), None)
    if form == "json" or validators:
        return _json(text, validators)
    if form == "directory":
        return None if _paths_in_listing(artifact.name, text) <= names else "missing_file"
    blank = is_blank(text) if form == "html" else form == "pages" and _has_blank_page(text)
    return "blank_page" if blank else None


def _schemas_of(artifact: Artifact, schemas: Mapping[str, JsonSchema]) -> list[JsonSchema]:
    return [schema for pattern, schema in schemas.items() if fnmatchcase(artifact.name, pattern)]


def _form(artifact: Artifact) -> Form:
    """Tell the format by media type, else by the file name extension."""
    media_type = (artifact.media_type or "").partition(";")[0].strip().lower()
    if artifact.name.endswith("/"):
        return "directory"
    if media_type.endswith("+json"):
        return "json"
    return FORMS.get(media_type) or FORMS.get(artifact.name.rpartition(".")[2].lower(), "other")


def _json(text: str, validators: Sequence[JsonSchema]) -> str | None:
    try:
        if not validators:
            check(text)
            return None
        value = read(text)
    except NotJson:
        return "invalid_json"
    return None if all(validator.is_valid(value) for validator in validators) else "schema_violation"


def _paths_in_listing(directory: str, listing: str) -> set[str]:
    """Return the paths in a directory listing, one per line."""
    within = _path(directory)
    paths = {_path(line) for line in listing.splitlines()} - {"", within}
    return {path if path.startswith(f"{within}/") else f"{within}/{path}" for path in paths}


def _path(name: str) -> str:
    return name.strip().removeprefix("./").strip("/")


def _has_blank_page(text: str) -> bool:
    """Whether any page is blank. Pages end with a form feed, as text extractors write them."""
    pages = text.removesuffix("\f").split("\f")
    return not all(page.strip() for page in pages)
