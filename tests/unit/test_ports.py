"""Ports are ours from the moment they are chosen."""

import socket

import pytest

from runtime.ports import PortTaken, reserve
from runtime.processes import LINUX


def listener(port: int) -> socket.socket:
    server = socket.socket()
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    server.bind(("127.0.0.1", port))
    server.listen()
    return server


def test_a_taken_port_is_refused_when_a_person_asked_for_it_and_avoided_when_not() -> None:
    mine = reserve()
    with listener(mine.port):
        mine.release()
        with pytest.raises(PortTaken, match=str(mine.port)):
            reserve(wanted=mine.port)
        other = reserve(preferred=mine.port)
        assert other.port != mine.port
        other.release()


@pytest.mark.skipif(not LINUX, reason="abstract sockets are Linux's")
def test_a_reserved_port_is_avoided_before_anybody_listens() -> None:
    mine = reserve()
    other = reserve(preferred=mine.port)
    assert other.port != mine.port
    mine.release()
    again = reserve(wanted=mine.port)
    again.release()
    other.release()


def test_a_server_can_listen_again_and_again_on_a_reserved_port() -> None:
    mine = reserve()
    for _ in range(3):
        with listener(mine.port) as server, socket.create_connection(("127.0.0.1", mine.port), timeout=5):
            accepted, _ = server.accept()
            accepted.close()  # the server's end closes first: TIME_WAIT stays on this port
    mine.release()
    reserve(wanted=mine.port).release()


def test_no_port_lies_where_clients_get_theirs() -> None:
    reserved = [reserve() for _ in range(20)]
    assert all(20000 <= each.port < 32768 for each in reserved)
    for each in reserved:
        each.release()
