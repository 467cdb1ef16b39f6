"""Confine the server's process by the kernel (Landlock, Linux 5.13 or newer), whatever a statement asks for.

Some ways to a file pass no access check of the engine (chDB 4.4): function `file`, paths in settings of formats, disks
that a table defines. After `confine` the process reads and writes its own data only; nor does it open connections or
run programs. Without Landlock the grants of `access` and the checks of `engine` remain.
"""

import contextlib
import ctypes
import inspect
import logging
import os
import re
import site
import sys
import sysconfig
from collections.abc import Iterable
from pathlib import Path

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446  # the same numbers on x86-64 and arm64
_ASK_VERSION = 1
_PATH_BENEATH = 1
_NO_NEW_PRIVILEGES = 38

# Rights of linux/landlock.h, by the version that brought them.
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_REMOVE_FILE, _MAKE_REGULAR = 1 << 5, 1 << 8
_REFER, _TRUNCATE, _DEVICE_CONTROL = 1 << 13, 1 << 14, 1 << 15
_OF_FILES = ((1, (1 << 13) - 1), (2, _REFER), (3, _TRUNCATE), (5, _DEVICE_CONTROL))
_OF_NETWORK = ((4, 0b11),)  # bind and connect over TCP
_READ = _READ_FILE | _READ_DIR

# What Python and the engine read at run time. Without `auxv` the engine pays a system call whenever it reads the time.
# Of /proc/self `task` has the environment too, so the process must begin with `harmless_environment`.
_SYSTEM = "usr lib lib64 bin etc/localtime etc/timezone etc/ld.so.cache dev/random dev/urandom dev/null"
_KERNEL = "sys/fs/cgroup sys/devices/system sys/kernel/mm proc/sys/vm proc/meminfo proc/cpuinfo proc/stat"
_PROCESS = "auxv cgroup limits maps mountinfo stat statm status task"
_READABLE = tuple(Path("/", name) for name in f"{_SYSTEM} {_KERNEL}".split()) + tuple(
    Path("/proc/self", name) for name in _PROCESS.split()
)
# Variables that the process may begin with; others may hold secrets of the operator.
_VARIABLES = re.compile(r"(?:PATH|HOME|USER|LANG|LANGUAGE|TZ|TMPDIR|VIRTUAL_ENV)|(?:LC|LD|PYTHON|COV|DYLD)\w*")
_log = logging.getLogger(__name__)


class _Ruleset(ctypes.Structure):
    _fields_ = (("files", ctypes.c_uint64), ("network", ctypes.c_uint64))


class _Beneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32))


def confine(directory: Path, *, readable: Path, writable: Iterable[Path], scratch: Path) -> bool:
    """Restrict this thread and all it starts later; call it before the engine starts threads. Cannot be undone.

    The directories are the server's. Temporary files go to `scratch`; in `directory` files can be made and removed,
    not read.
    Returns False, with a warning in the log, where the kernel has no Landlock.
    """
    hide_python_objects()
    os.environ["TMPDIR"] = str(scratch)  # the engine makes a folder there when it is imported
    version = landlock_version()
    if version < 1:
        _log.warning(
            "this system has no Landlock: a statement can read every file that this process can read; "
            "give the keys to nobody else"
        )
        return False
    files = sum(rights for since, rights in _OF_FILES if since <= version)
    network = sum(rights for since, rights in _OF_NETWORK if since <= version)
    ruleset = _Ruleset(files, network)
    handle = _call(_CREATE_RULESET, ctypes.byref(ruleset), ctypes.c_size_t(ctypes.sizeof(ruleset)), 0)
    try:
        for path in {*_READABLE, *_python_folders(), readable}:
            _allow(handle, path, _READ & files)
        _allow(handle, Path("/dev/null"), (_READ_FILE | _WRITE_FILE) & files)
        _allow(handle, directory, (_MAKE_REGULAR | _REMOVE_FILE | _WRITE_FILE | _TRUNCATE) & files)
        for path in (*writable, scratch):
            _allow(handle, path, files & ~(_EXECUTE | _DEVICE_CONTROL))
        if ctypes.CDLL(None, use_errno=True).prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0):
            raise OSError(ctypes.get_errno(), "prctl")
        _call(_RESTRICT_SELF, handle, 0)
    finally:
        os.close(handle)
    return True


def harmless_environment() -> dict[str, str]:
    """Return those variables of this process that a confined one needs, none that may hold a secret."""
    return {name: value for name, value in os.environ.items() if _VARIABLES.fullmatch(name)}


def begin_without_secrets() -> None:
    """Restart this program without the other variables: the initial ones stay visible in /proc."""
    environment = harmless_environment()
    if environment != dict(os.environ):
        os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], environment)


def hide_python_objects() -> None:
    """Let the engine's table function `Python` find no object: it looks for names in the frames of its callers."""
    inspect.currentframe = lambda: None


def landlock_version() -> int:
    """Return the version of Landlock that this kernel has; 0 without it."""
    if sys.platform != "linux":
        return 0
    try:
        return _call(_CREATE_RULESET, None, ctypes.c_size_t(0), _ASK_VERSION)
    except OSError:
        return 0


def _python_folders() -> set[Path]:
    """Name the folders that modules are imported from, the working directory and checkouts left out."""
    names = ("stdlib", "platstdlib", "purelib", "platlib")
    folders = [*(sysconfig.get_path(name) for name in names), sys.base_prefix, *site.getsitepackages()]
    return {Path(folder) for folder in folders}


def _allow(ruleset: int, path: Path, rights: int) -> None:
    with contextlib.suppress(FileNotFoundError, PermissionError):
        parent = os.open(path, os.O_PATH | os.O_CLOEXEC)
        try:
            if not path.is_dir():
                rights &= _READ_FILE | _WRITE_FILE | _TRUNCATE
            rule = _Beneath(rights, parent)
            _call(_ADD_RULE, ruleset, _PATH_BENEATH, ctypes.byref(rule), 0)
        finally:
            os.close(parent)


def _call(number: int, *arguments: object) -> int:
    result = int(ctypes.CDLL(None, use_errno=True).syscall(ctypes.c_long(number), *arguments))
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result
