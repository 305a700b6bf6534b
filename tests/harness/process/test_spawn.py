"""Forks: what they keep of their parent."""

import gc
import os
import socket

from harness.process.spawn import close_all_but


def in_a_fork(function):
    """Return what ``function`` returns in a fork of this process, a short text."""
    mine, its = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.write(its, function(its).encode())
        finally:
            os._exit(0)
    os.close(its)
    with open(mine) as pipe:
        text = pipe.read()
    os.waitpid(pid, 0)
    return text


def test_a_socket_of_the_parent_does_not_close_what_has_its_number_in_a_fork():
    """The collector found it later, and a worker lost the channel to its judge: a correct candidate had crashed."""
    cycle = [socket.socket()]
    cycle.append(cycle)
    number = cycle[0].fileno()

    def reused(pipe):
        nonlocal cycle
        close_all_but([pipe])
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, number)
        del cycle
        gc.collect()
        return "open" if os.path.exists(f"/proc/self/fd/{number}") else "closed"

    assert in_a_fork(reused) == "open"
