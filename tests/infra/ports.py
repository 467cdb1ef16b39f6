"""Ports for processes that cannot pick their own."""

import random
import socket


def free_ports(count: int) -> int:
    """The first of `count` neighbours that were free a moment ago.

    Below the range from which systems deal out ports: nothing that asks for any port, in a test at the same time or
    while a node is down, is given one of these.
    """
    for first in random.sample(range(20_000, 30_000, count), 100):
        probes = [socket.socket() for _ in range(count)]
        try:
            for number, probe in enumerate(probes):
                probe.bind(("127.0.0.1", first + number))
        except OSError:
            continue
        else:
            return first
        finally:
            for probe in probes:
                probe.close()
    raise AssertionError("no free ports")
