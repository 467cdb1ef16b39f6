"""Reads the local cache of Hugging Face, without network and without importing its client (half a second)."""

import re
from importlib.util import find_spec
from pathlib import Path

NAME = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?\Z", re.ASCII)


def snapshot(name: str, revision: str | None = None) -> Path | None:
    """Return the folder of a model's revision (a commit, tag or branch as last fetched), or None.

    After an aborted download it is incomplete.
    """
    if not NAME.match(name) or find_spec("huggingface_hub") is None:
        return None
    from huggingface_hub import constants

    stored = Path(constants.HF_HUB_CACHE) / f"models--{name.replace('/', '--')}"
    wanted = revision or constants.DEFAULT_REVISION
    ref = stored / "refs" / wanted
    folder = stored / "snapshots" / (ref.read_text("utf-8").strip() if ref.is_file() else wanted)
    return folder if folder.is_dir() else None
