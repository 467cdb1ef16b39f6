"""How tests are dealt out to the workers of one run (pytest-xdist): by file, some files in a row, one at the end."""

from xdist.scheduler import LoadScopeScheduling

# What kills processes, and what mostly waits for brokers: one test of each row at a time, from the beginning on.
IN_A_ROW = {
    "outages": ("tests/chaos/", "tests/failures/"),
    "lanes": ("tests/stream/core/", "tests/stream/pipe/test_replay", "tests/drift/test_leader.py"),
    # The first of all runs builds a Collector, which takes minutes.
    "collector": ("tests/stream/collector/",),
    # One broker for all of them, which takes 5 s to start.
    "secured": ("tests/stream/security/",),
}
# Six processes that keep to a timeline: they need a processor, so they begin when little else is left.
AT_THE_END = "tests/stream/demo/test_demo.py"


def unit_of(nodeid: str) -> str:
    """Tests of one unit run on one worker, in their order."""
    file = nodeid.partition("::")[0]
    return next((row for row, beginnings in IN_A_ROW.items() if file.startswith(beginnings)), file)


def turn_of(nodeid: str) -> int:
    """When its unit begins: units of a lower number are dealt out before."""
    unit = unit_of(nodeid)
    return 0 if unit in IN_A_ROW else 2 if unit == AT_THE_END else 1


class ByFile(LoadScopeScheduling):  # type: ignore[misc]  # untyped
    """Deals out units in the order in which they were collected."""

    def _split_scope(self, nodeid: str) -> str:
        return unit_of(nodeid)
