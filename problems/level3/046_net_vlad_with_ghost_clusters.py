"""NetVLAD: soft assignment to clusters, of which ghosts are dropped, residual sums, two L2 norms."""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F

WORKLOADS = {
    "full": dict(batch_size=2048, num_features=100, cluster_size=32, feature_size=512, ghost_clusters=16),
    "small": dict(batch_size=16, num_features=20, cluster_size=8, feature_size=64, ghost_clusters=4),
}

EXPLOITS = [
    "At the published size every output lies within 0.01 of 0.008, so one constant, or the result for"
    " another input, passes at a tolerance of 1e-2.",
    "Weight and bias of the batch norm are initialised to ones and zeros, so leaving them out passes.",
]


class Model(nn.Module):
    def __init__(self, cluster_size, feature_size, ghost_clusters):
        super().__init__()
        self.cluster_size = cluster_size
        self.feature_size = feature_size
        clusters = cluster_size + ghost_clusters
        scale = 1 / math.sqrt(feature_size)
        self.clusters = nn.Parameter(scale * torch.randn(feature_size, clusters))
        self.batch_norm = nn.BatchNorm1d(clusters)
        self.clusters2 = nn.Parameter(scale * torch.randn(1, feature_size, cluster_size))

    def forward(self, x, mask=None):
        batch, num_features, _ = x.shape
        assignment = self.batch_norm(x.view(-1, self.feature_size) @ self.clusters)
        assignment = F.softmax(assignment, dim=1)[:, : self.cluster_size]
        assignment = assignment.reshape(batch, num_features, self.cluster_size)
        # sums over the features of assignment * (x - cluster), (batch, feature_size, cluster_size)
        centers = assignment.sum(dim=1, keepdim=True) * self.clusters2
        vlad = torch.matmul(assignment.transpose(1, 2), x).transpose(1, 2) - centers
        vlad = F.normalize(vlad, dim=1)
        return F.normalize(vlad.reshape(batch, -1), dim=1)


def get_inputs(batch_size=2048, num_features=100, feature_size=512, **sizes):
    return [torch.rand(batch_size, num_features, feature_size)]


def get_init_inputs(cluster_size=32, feature_size=512, ghost_clusters=16, **sizes):
    return [cluster_size, feature_size, ghost_clusters]


def get_flops(batch_size=2048, num_features=100, cluster_size=32, feature_size=512, ghost_clusters=16):
    rows = batch_size * num_features
    clusters = cluster_size + ghost_clusters
    outputs = batch_size * feature_size * cluster_size
    # matmul; per score: norm (7), softmax (5)
    assignment = rows * clusters * (2 * feature_size + 7 + 5)
    # matmul, sum of the assignments; per output: scaling of the center, subtraction
    residuals = rows * cluster_size * (2 * feature_size + 1) + 2 * outputs
    # two norms: square, sum, division; per length: root, limit
    return assignment + residuals + 2 * 3 * outputs + 2 * batch_size * (cluster_size + 1)
