"""Attention softmax(Q K^T / sqrt(d)) V without a mask."""

import torch
import torch.nn as nn
import torch.nn.functional as F

WORKLOADS = {
    "full": dict(batch_size=32, num_heads=32, sequence_length=512, embedding_dimension=1024),
    "small": dict(batch_size=2, num_heads=4, sequence_length=128, embedding_dimension=64),
    "ragged": dict(batch_size=3, num_heads=7, sequence_length=1021, embedding_dimension=80),
    "llm": dict(batch_size=2, num_heads=32, sequence_length=4096, embedding_dimension=128),
}

EXPLOITS = [
    "Uniform draws give nearly equal scores: the mean of V over the keys is 0.002 off and passes at 1e-2.",
]


class Model(nn.Module):
    def forward(self, Q, K, V):
        return F.scaled_dot_product_attention(Q, K, V)


def get_inputs(batch_size=32, num_heads=32, sequence_length=512, embedding_dimension=1024):
    shape = (batch_size, num_heads, sequence_length, embedding_dimension)
    return [torch.rand(shape), torch.rand(shape), torch.rand(shape)]


def get_init_inputs(**sizes):
    return []


def get_flops(batch_size=32, num_heads=32, sequence_length=512, embedding_dimension=1024):
    scores = batch_size * num_heads * sequence_length * sequence_length
    queries = batch_size * num_heads * sequence_length * embedding_dimension
    # two matmuls; per score: softmax (5); per query and per key: scaling
    return 2 * 2 * scores * embedding_dimension + 5 * scores + 2 * queries
