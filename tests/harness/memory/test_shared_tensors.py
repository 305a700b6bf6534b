"""Tensors go through the judge's memory unchanged, and the judge keeps a copy."""

import os

import pytest
import torch

from harness.memory.shared_tensors import OpenedSharedTensors, SharedTensors, lay_out

TENSORS = [
    torch.randn(3, 5),
    torch.tensor(7),
    torch.empty(0, 4),
    torch.tensor([True, False, True]),
    torch.randn(9, 4).T,  # not contiguous
    torch.randn(7).half(),
]


def through(device):
    tensors = [t.to(device) for t in TENSORS]
    outbox = SharedTensors(device, tensors)
    handle = {k: v for k, v in outbox.handle.items() if k != "ipc"}
    opened = OpenedSharedTensors(handle, [os.dup(fd) for fd in outbox.fds])
    for slot, tensor in zip(lay_out(tensors), tensors):
        opened.write(slot, tensor)
    copies = [outbox.read(slot) for slot in lay_out(tensors)]
    return outbox, opened, tensors, copies


def test_every_shape_and_type_arrives():
    outbox, _, tensors, copies = through(torch.device("cpu"))
    assert all(torch.equal(a, b) and a.dtype == b.dtype for a, b in zip(tensors, copies))
    outbox.close()


def test_what_was_read_does_not_change_any_more():
    outbox, opened, tensors, copies = through(torch.device("cpu"))
    opened.write(lay_out(tensors)[0], torch.zeros(3, 5))
    assert torch.equal(copies[0], tensors[0])
    outbox.close()


def test_it_holds_the_largest_of_several_contents():
    outbox = SharedTensors(torch.device("cpu"), [torch.zeros(10)], [torch.zeros(1 << 20), torch.zeros(1 << 20)])
    assert outbox.handle["bytes"] >= 8 << 20
    outbox.close()


def test_writing_beyond_the_end_fails_in_the_writer():
    outbox = SharedTensors(torch.device("cpu"), [torch.zeros(4)])
    opened = OpenedSharedTensors(outbox.handle, [os.dup(fd) for fd in outbox.fds])
    big = torch.zeros(4 << 20)
    with pytest.raises((ValueError, RuntimeError)):
        opened.write(lay_out([big])[0], big)
    outbox.close()


def test_nobody_grows_or_shrinks_its_file():
    """A candidate grew it by what its limit allowed and let go of it: the judge held that, and no process showed it."""
    outbox = SharedTensors(torch.device("cpu"), [torch.zeros(1 << 10)])
    (fd,) = outbox.fds
    size = os.fstat(fd).st_size
    for change in (lambda: os.posix_fallocate(fd, size, 1 << 20), lambda: os.truncate(fd, size - 1)):
        with pytest.raises(PermissionError):
            change()
    outbox.close()


@pytest.mark.gpu
def test_device_memory_is_shared_through_ipc_in_whole_pages():
    outbox = SharedTensors(torch.device("cuda", 0), [torch.zeros(5, device="cuda")])
    assert "ipc" in outbox.handle and outbox.handle["bytes"] % (2 << 20) == 0 and not outbox.fds
    outbox.close()


@pytest.mark.gpu
def test_device_memory_that_the_allocator_keeps_is_named_as_lacking_and_not_replaced_by_a_file():
    device = torch.device("cuda", 0)
    torch.cuda.empty_cache()
    free, _ = torch.cuda.mem_get_info()
    kept = torch.empty(int(0.8 * free), dtype=torch.uint8, device=device)
    del kept  # its memory stays with PyTorch's allocator
    half = torch.empty(free // 2, dtype=torch.uint8, device="meta")
    with pytest.raises(torch.OutOfMemoryError, match="are to be shared on the GPU"):
        SharedTensors(device, [half])
    torch.cuda.empty_cache()
    outbox = SharedTensors(device, [half])
    assert "ipc" in outbox.handle
    outbox.close()
