"""Causal multi-head self-attention with fused q, k, v projection, as in a small GPT."""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F

WORKLOADS = {
    "full": dict(batch_size=128, seq_len=512, n_embd=768, n_head=8, max_seqlen=1024),
    "small": dict(batch_size=4, seq_len=64, n_embd=96, n_head=4, max_seqlen=128),
}
ATTENTION = ("n_embd", 2.5)  # scores have a standard deviation of 2


class Model(nn.Module):
    def __init__(self, n_embd, n_head, attn_pdrop, resid_pdrop, max_seqlen):
        super().__init__()
        self.c_attn = nn.Linear(n_embd, 3 * n_embd)
        self.c_proj = nn.Linear(n_embd, n_embd)
        self.attn_dropout = nn.Dropout(attn_pdrop)
        self.resid_dropout = nn.Dropout(resid_pdrop)
        mask = torch.tril(torch.ones(max_seqlen, max_seqlen))
        self.register_buffer("bias", mask.view(1, 1, max_seqlen, max_seqlen))
        self.n_head = n_head
        self.n_embd = n_embd

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = (
            part.view(batch, length, self.n_head, width // self.n_head).transpose(1, 2)
            for part in self.c_attn(x).split(self.n_embd, dim=2)
        )
        scores = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
        scores = scores.masked_fill(self.bias[:, :, :length, :length] == 0, float("-inf"))
        attention = self.attn_dropout(F.softmax(scores, dim=-1))
        merged = (attention @ v).transpose(1, 2).contiguous().view(batch, length, width)
        return self.resid_dropout(self.c_proj(merged))


def get_inputs(batch_size=128, seq_len=512, n_embd=768, **sizes):
    return [torch.rand(batch_size, seq_len, n_embd)]


def get_init_inputs(n_embd=768, n_head=8, max_seqlen=1024, **sizes):
    return [n_embd, n_head, 0.0, 0.0, max_seqlen]


def get_flops(batch_size=128, seq_len=512, n_embd=768, n_head=8, **sizes):
    tokens = batch_size * seq_len
    scores = batch_size * n_head * seq_len * seq_len
    projections = 2 * tokens * n_embd * 4 * n_embd + 4 * tokens * n_embd
    attention = 2 * 2 * scores * (n_embd // n_head)
    # per score: scaling, mask, softmax (5); comparison of the mask with 0
    return projections + attention + 7 * scores + seq_len**2
