"""Evaluation on the nodes of a Ray cluster: builds on their cores, one judge for each of their GPUs.

Ray places, retries and notices what is lost; there is no scheduler here. A build
is a task on one core that holds the memory it is expected to take. A judge lives
in an actor that owns a whole GPU; without GPUs, in one that owns all the cores
of a node, so that no build and no other timing goes on beside it. What is
running on a node when it is lost is given to another one.

Nodes need this package, PyTorch and compilers, and share no files: a solution
travels with the files beside it that it names, a problem with its source, and
what was built as entries of the cache. Ray's own processes never run a
candidate: that happens in workers which the harness forks, as on one host. But
Ray asks nobody who connects to it for a password, so a candidate that looks for
its ports can do what Ray's users can.
"""

