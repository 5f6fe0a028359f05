#!/usr/bin/env python3
"""Writes expected.json: losses, gradients and parameters of a few training steps in PyTorch, the figures that
the Go tests expect. Run it in this folder with a Python that has PyTorch (1.13 made the file):

    python3 expected.py > expected.json

Parameters are those of the state_dict, flattened: for each layer the weight, out×in, then the bias.
"""
import json

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_num_threads(1)


def numbers(t):
    return [float("%.9g" % v) for v in t.flatten().tolist()]


def flat(net, of):
    parts = []
    for layer in net:
        if isinstance(layer, nn.Linear):
            parts += [of(layer.weight).reshape(-1), of(layer.bias)]
    return numbers(torch.cat([p.detach() for p in parts]))


def network(widths, activation):
    layers = []
    for i, (a, b) in enumerate(zip(widths, widths[1:])):
        layers.append(nn.Linear(a, b))
        if i < len(widths) - 2:
            layers.append(activation())
    return nn.Sequential(*layers)


def loss(net, x, y):
    return F.nll_loss(F.log_softmax(net(x), dim=1), y)


ACTIVATIONS = {"relu": nn.ReLU, "tanh": nn.Tanh, "sigmoid": nn.Sigmoid}
METHODS = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.1),
    "sgd, weight decay": lambda p: torch.optim.SGD(p, lr=0.1, weight_decay=0.02),
    "momentum": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, weight_decay=0.02),
    "nesterov": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.02),
    "adam": lambda p: torch.optim.Adam(p, lr=0.01),
    "adam, weight decay": lambda p: torch.optim.Adam(p, lr=0.01, betas=(0.8, 0.95), eps=1e-6, weight_decay=0.02),
}


def main():
    torch.manual_seed(1)
    gradients, steps = [], []
    for name, widths, n in (("relu", [6, 5, 3], 7), ("tanh", [4, 5, 3, 2], 5), ("sigmoid", [3, 2, 4], 6), ("relu", [5, 3], 4)):
        net = network(widths, ACTIVATIONS[name])
        x, y = torch.randn(n, widths[0]), torch.randint(0, widths[-1], (n,))
        value = loss(net, x, y)
        value.backward()
        gradients.append(dict(layers=widths, activation=name, x=numbers(x), y=y.tolist(), params=flat(net, lambda p: p),
                              loss=value.item(), grad=flat(net, lambda p: p.grad)))
    x, y = torch.randn(8, 4), torch.randint(0, 3, (8,))
    first = network([4, 3, 3], nn.Tanh)
    start = {k: v.clone() for k, v in first.state_dict().items()}
    for name, method in METHODS.items():
        net = network([4, 3, 3], nn.Tanh)
        net.load_state_dict(start)
        optimizer, losses = method(net.parameters()), []
        for _ in range(5):
            optimizer.zero_grad()
            value = loss(net, x, y)
            value.backward()
            losses.append(value.item())
            optimizer.step()
        steps.append(dict(method=name, losses=losses, params=flat(net, lambda p: p)))
    training = dict(layers=[4, 3, 3], activation="tanh", x=numbers(x), y=y.tolist(), params=flat(first, lambda p: p), methods=steps)
    print(json.dumps(dict(torch=str(torch.__version__), gradients=gradients, training=training)))


main()
