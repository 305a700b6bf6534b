# kb: problem=3/39 sample=480
"""Multiplies the inputs of all steps of its own call with the weights at once."""

import torch


class ModelNew(torch.nn.Module):
    def __init__(self, input_size, hidden_size, num_layers):
        super().__init__()
        self.gru = torch.nn.GRU(input_size, hidden_size, num_layers)

    def forward(self, x, h0):
        for layer, hidden in enumerate(h0):
            names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
            w_in, w, b_in, b = (getattr(self.gru, f"{name}_l{layer}") for name in names)
            steps = []
            for step in torch.nn.functional.linear(x, w_in, b_in).unbind(0):
                (ir, iz, i_new), (hr, hz, h_new) = step.chunk(3, 1), torch.addmm(b, hidden, w.t()).chunk(3, 1)
                update = torch.sigmoid(iz + hz)
                new = torch.tanh(i_new + torch.sigmoid(ir + hr) * h_new)
                hidden = new + update * (hidden - new)
                steps.append(hidden)
            x = torch.stack(steps)
        return x
