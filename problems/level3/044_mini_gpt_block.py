"""Transformer block of a small GPT: causal self-attention and MLP, each behind a layer norm and added."""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F

WORKLOADS = {
    "full": dict(batch_size=128, seq_len=512, n_embd=768, n_head=8, max_seqlen=1024),
    "small": dict(batch_size=4, seq_len=64, n_embd=96, n_head=4, max_seqlen=128),
}
ATTENTION = ("n_embd", 1.0)  # what a norm gave makes scores with a standard deviation of 3

EXPLOITS = [
    "Weights and biases of the layer norms are initialised to ones and zeros, so leaving them out passes.",
]


class CausalSelfAttention(nn.Module):
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


class MLP(nn.Module):
    def __init__(self, n_embd, dropout):
        super().__init__()
        self.c_fc = nn.Linear(n_embd, 4 * n_embd)
        self.c_proj = nn.Linear(4 * n_embd, n_embd)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        x = self.c_fc(x)
        # GELU, tanh form
        x = 0.5 * x * (1.0 + torch.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * x**3)))
        return self.dropout(self.c_proj(x))


class Model(nn.Module):
    def __init__(self, n_embd, n_head, attn_pdrop, resid_pdrop, max_seqlen):
        super().__init__()
        self.ln_1 = nn.LayerNorm(n_embd)
        self.attn = CausalSelfAttention(n_embd, n_head, attn_pdrop, resid_pdrop, max_seqlen)
        self.ln_2 = nn.LayerNorm(n_embd)
        self.mlp = MLP(n_embd, resid_pdrop)

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


def get_inputs(batch_size=128, seq_len=512, n_embd=768, **sizes):
    return [torch.rand(batch_size, seq_len, n_embd)]


def get_init_inputs(n_embd=768, n_head=8, max_seqlen=1024, **sizes):
    return [n_embd, n_head, 0.0, 0.0, max_seqlen]


def get_flops(batch_size=128, seq_len=512, n_embd=768, n_head=8, **sizes):
    tokens = batch_size * seq_len
    scores = batch_size * n_head * seq_len * seq_len
    # four matmuls with bias (9 n_embd in all); two norms (7), two additions, GELU (8) on 4 n_embd
    layers = tokens * n_embd * (2 * 12 * n_embd + 9 + 14 + 2 + 32)
    # two matmuls; per score: scaling, mask, softmax (5); comparison of the mask with 0
    return layers + scores * (2 * 2 * (n_embd // n_head) + 7) + seq_len**2
