"""Ports for processes that cannot pick their own, and where a process listens."""

import random
import socket
from ipaddress import IPv6Address, ip_address

import psutil


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


def listening(pid: int) -> set[tuple[str, int]]:
    """Every (address, port) that the process itself listens at; an IPv4 address in its usual form."""
    found = psutil.Process(pid).net_connections("inet")
    return {(_plain(one.laddr.ip), one.laddr.port) for one in found if one.status == psutil.CONN_LISTEN}


def _plain(address: str) -> str:
    """Java listens at IPv4 addresses as IPv6 writes them."""
    ip = ip_address(address)
    mapped = ip.ipv4_mapped if isinstance(ip, IPv6Address) else None
    return str(mapped or ip)
