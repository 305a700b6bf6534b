"""Mamba-2 selective scan in its chunked form, returning the state after the last step.

Equal in exact arithmetic to the recurrence over time
``h_t = exp(A_t) h_(t-1) + X_t B_t^T`` with ``h_0 = 0``.
"""

import torch
import torch.nn as nn
import torch.nn.functional as F

WORKLOADS = {
    "full": dict(batch_size=2048, seq_length=128, n_heads=8, d_head=64, d_state=16, block_len=64),
    "small": dict(batch_size=4, seq_length=64, n_heads=4, d_head=16, d_state=8, block_len=16),
}

EXPLOITS = [
    "The output within the chunks, most of the counted operations, does not reach the final state: leaving it"
    " out, and C with it, passes.",
]

INDEPENDENT = (0, 1)  # the states of each head: by its weights one is a billion times as large as another


def segment_sum(x):
    """(..., T) -> (..., T, T): entry (l, s) is the sum of x over (s, l], -inf above the diagonal."""
    length = x.size(-1)
    total = torch.cumsum(x, dim=-1)
    sums = total[..., :, None] - total[..., None, :]
    below = torch.tril(torch.ones(length, length, dtype=torch.bool, device=x.device))
    return sums.masked_fill(~below, float("-inf"))


class Model(nn.Module):
    def __init__(self, batch_size, seq_length, n_heads, d_head, d_state, block_len=64):
        super().__init__()
        assert seq_length % block_len == 0, "seq_length must be a multiple of block_len"
        self.block_len = block_len
        self.A = nn.Parameter(torch.randn(batch_size, seq_length, n_heads))
        self.B = nn.Parameter(torch.randn(batch_size, seq_length, n_heads, d_state))
        self.C = nn.Parameter(torch.randn(batch_size, seq_length, n_heads, d_state))

    def forward(self, X, initial_states=None):
        # b batch, c chunk, l and s positions in a chunk, h head, p head dim, n state
        x, A, B, C = (t.unflatten(1, (-1, self.block_len)) for t in (X, self.A, self.B, self.C))
        A = A.permute(0, 3, 1, 2)
        A_total = torch.cumsum(A, dim=-1)

        # the output within the chunks: computed and discarded, as published
        decay = torch.exp(segment_sum(A))
        torch.einsum("bclhn,bcshn,bhcls,bcshp->bclhp", C, B, decay, x)

        decay_to_end = torch.exp(A_total[..., -1:] - A_total)
        states = torch.einsum("bclhn,bhcl,bclhp->bchpn", B, decay_to_end, x)
        if initial_states is None:
            initial_states = torch.zeros_like(states[:, :1])
        states = torch.cat([initial_states, states], dim=1)
        chunk_decay = torch.exp(segment_sum(F.pad(A_total[..., -1], (1, 0))))
        return torch.einsum("bhzc,bchpn->bzhpn", chunk_decay, states)[:, -1]


def get_inputs(batch_size=2048, seq_length=128, n_heads=8, d_head=64, **sizes):
    return [torch.rand(batch_size, seq_length, n_heads, d_head)]


def get_init_inputs(batch_size=2048, seq_length=128, n_heads=8, d_head=64, d_state=16, block_len=64):
    return [batch_size, seq_length, n_heads, d_head, d_state, block_len]


def get_flops(batch_size=2048, seq_length=128, n_heads=8, d_head=64, d_state=16, block_len=64):
    chunks = seq_length // block_len
    steps = batch_size * seq_length * n_heads
    scores = steps * block_len
    boundaries = batch_size * n_heads * (chunks + 1)
    matmuls = 2 * (
        scores * d_state  # C . B within a chunk (discarded)
        + scores * d_head  # weighted sum of x (discarded)
        + steps * d_head * d_state  # states of the chunks
        + boundaries * (chunks + 1) * d_head * d_state  # states handed across chunks
    )
    # within a chunk: difference, mask, exponential, product with the decay;
    # across: two cumulative sums, a difference and an exponential a step, scaling of B;
    # a cumulative sum a boundary, difference, mask and exponential a pair of them
    return matmuls + 4 * scores + steps * (4 + d_state) + boundaries * (1 + 3 * (chunks + 1))
