#!/usr/bin/env python3
"""Writes cnn.json: what PyTorch computes along a training run of each of the named convolutional networks, the
figures that the Go tests expect. Run it in this folder with a Python that has PyTorch (1.13 made the file):

    python3 cnn.py > cnn.json

Start parameters and samples are not stored but made by a formula from splitmix64, in float64 rounded once, on both
sides. A network is trained for 200 steps at rate 0.05. The parameters of a step are stored as the change since the
start, each tensor as a sum of a few products of a column and a row of 8-bit integers, scaled: a little less than what
was learnt, but exactly the same on both sides. At these parameters PyTorch computes the loss and the gradient of the
step's batch. A gradient is stored as its norm and its products with 32 vectors of random signs: the mean square of the
differences of such products estimates the square of the norm of the difference of two gradients.
"""
import base64
import json
import math

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_num_threads(1)


def splitmix(seed, n):
    with np.errstate(over="ignore"):
        z = np.uint64(seed) * np.uint64(0xD1B54A32D192ED03) + np.arange(1, n + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))


def uniform(seed, n):
    """n numbers in [-1, 1)."""
    return (splitmix(seed, n) >> np.uint64(40)).astype(np.float64) / 2**23 - 1


PROTOTYPES = uniform(1, 490).reshape(10, 7, 1, 7, 1).repeat(4, axis=2).repeat(4, axis=4).reshape(10, 784)


def batch(step, n):
    """Noisy prototypes of their classes: 7×7 squares of 4×4 pixels."""
    y = (splitmix(1000 + step, n) % np.uint64(10)).astype(np.int64)
    x = 0.75 * PROTOTYPES[y] + uniform(2000 + step, 784 * n).reshape(n, 784)
    return torch.tensor(x.astype(np.float32)).reshape(n, 1, 28, 28), torch.tensor(y)


class Small(nn.Sequential):
    ranks = {"0.weight": 2, "3.weight": 2, "7.weight": 2, "9.weight": 3}

    def __init__(self):
        super().__init__(nn.Conv2d(1, 10, 5), nn.MaxPool2d(2), nn.ReLU(), nn.Conv2d(10, 20, 5), nn.MaxPool2d(2), nn.ReLU(),
                         nn.Flatten(), nn.Linear(320, 50), nn.ReLU(), nn.Linear(50, 10))


class Big(nn.Sequential):
    ranks = {"0.weight": 2, "2.weight": 2, "6.weight": 1, "8.weight": 3}

    def __init__(self):
        super().__init__(nn.Conv2d(1, 32, 3), nn.ReLU(), nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
                         nn.Linear(9216, 128), nn.ReLU(), nn.Linear(128, 10))


class LeNet5(nn.Sequential):
    ranks = {"0.weight": 2, "3.weight": 2, "7.weight": 2, "9.weight": 2, "11.weight": 3}

    def __init__(self):
        super().__init__(nn.Conv2d(1, 6, 5, padding=2), nn.Tanh(), nn.AvgPool2d(2), nn.Conv2d(6, 16, 5), nn.Tanh(), nn.AvgPool2d(2),
                         nn.Flatten(), nn.Linear(400, 120), nn.Tanh(), nn.Linear(120, 84), nn.Tanh(), nn.Linear(84, 10))


def start(net):
    """Start parameters like PyTorch's own."""
    state, fan = {}, 0
    for i, (name, p) in enumerate(net.state_dict().items()):
        if name.endswith("weight"):
            fan = p[0].numel()
        state[name] = uniform(10 + i, p.numel()).reshape(p.shape) / math.sqrt(fan)
    return state


def rounded(state):
    return {k: torch.tensor(v.astype(np.float32)) for k, v in state.items()}


def factors(change, rank):
    """change as products of columns and rows of integers of at most 127, with a scale each."""
    a, s, b = np.linalg.svd(change.reshape(change.shape[0], -1), full_matrices=False)
    found = []
    for r in range(min(rank, len(s))):
        if s[r] == 0:
            continue
        u, v = a[:, r], b[r]
        scale = s[r] * abs(u).max() * abs(v).max() / 127**2
        column, row = np.round(127 * u / abs(u).max()).astype(np.int8), np.round(127 * v / abs(v).max()).astype(np.int8)
        found.append((float(scale), column, row))
    return found


def compressed(net, state, first):
    """The stored form of the parameters of a step, and what is read from it."""
    stored, read = [], {}
    for name, p0 in first.items():
        change = state[name].numpy().astype(np.float64) - p0.astype(np.float32)
        total, terms = np.zeros(p0.size), []
        for scale, column, row in factors(change, net.ranks.get(name, 1)):
            total = total + scale * np.outer(column.astype(np.int64), row.astype(np.int64)).reshape(-1).astype(np.float64)
            terms.append(dict(scale=scale, column=base64.b64encode(column.tobytes()).decode(), row=base64.b64encode(row.tobytes()).decode()))
        read[name] = p0.astype(np.float32).astype(np.float64) + total.reshape(p0.shape)
        stored.append(terms)
    return stored, read


def gradient(net, x, y):
    net.zero_grad()
    value = F.nll_loss(F.log_softmax(net(x), dim=1), y)
    value.backward()
    return value.item(), np.concatenate([p.grad.numpy().reshape(-1) for p in net.parameters()]).astype(np.float64)


def sketch(g):
    signs = splitmix(3, len(g))
    products = []
    for k in range(32):
        sign = ((signs >> np.uint64(k)) & np.uint64(1)).astype(np.float64) * 2 - 1
        products.append(float("%.9g" % (g * sign).sum()))
    return dict(norm=float("%.9g" % np.linalg.norm(g)), products=products)


def trained(net, first, n, rate, steps, checkpoint):
    net.load_state_dict(rounded(first))
    optimizer, losses = torch.optim.SGD(net.parameters(), lr=rate), []
    for step in range(steps + 1):
        if checkpoint and step % 20 == 0:
            checkpoint(step, {k: v.clone() for k, v in net.state_dict().items()})
        x, y = batch(step, n)
        losses.append(gradient(net, x, y)[0])
        optimizer.step()
    return losses


def main():
    networks = []
    for name, kind, n in (("small", Small, 32), ("big", Big, 8), ("lenet5", LeNet5, 16)):
        net, other = kind(), kind()
        first, checkpoints = start(net), []

        def checkpoint(step, state):
            stored, read = compressed(net, state, first)
            other.load_state_dict(rounded(read))
            value, g = gradient(other, *batch(step, n))
            checkpoints.append(dict(step=step, params=stored, loss=value, **sketch(g)))

        trained(net, first, n, 0.05, 200, checkpoint)
        free = trained(net, first, n, 0.01, 9, None)
        networks.append(dict(name=name, batch=n, losses=free, checkpoints=checkpoints))
    print(json.dumps(dict(torch=str(torch.__version__), networks=networks)))


main()
