"""The loop of cnn.yaml in PyTorch: pytorch.py FOLDER [ROUNDS] [BATCH] [THREADS], where FOLDER has
MNIST's four files."""
import gzip, sys, time
import numpy as np
import torch
from torch import nn
import torch.nn.functional as F

folder, rounds, batch, threads = sys.argv[1], *(int(a) for a in sys.argv[2:] + ["100", "10", "2"][len(sys.argv) - 2:])
torch.set_num_threads(threads)
torch.manual_seed(1)


def load(name, skip):
    with gzip.open(f"{folder}/{name}-ubyte.gz") as f:
        return torch.from_numpy(np.frombuffer(f.read(), np.uint8, offset=skip).copy())


def samples(name):
    return load(name + "-images-idx3", 16).view(-1, 1, 28, 28).float() / 255, load(name + "-labels-idx1", 8).long()


class CNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 10, 5), nn.Conv2d(10, 20, 5)
        self.dense1, self.dense2 = nn.Linear(320, 50), nn.Linear(50, 10)

    def forward(self, x):
        x = F.relu(F.max_pool2d(self.conv1(x), 2))
        x = F.relu(F.max_pool2d(self.conv2(x), 2))
        return self.dense2(F.relu(self.dense1(x.flatten(1))))


x, y = samples("train")
shards = [(x[rows], y[rows]) for rows in torch.randperm(len(x)).view(100, -1)]
test_x, test_y = samples("t10k")
model = CNN()
params = list(model.parameters())
wall, processor = time.perf_counter(), time.process_time()
for _ in range(rounds):
    start = [p.detach().clone() for p in params]
    mean = [torch.zeros_like(p) for p in start]
    for client in torch.randperm(100)[:10].tolist():
        with torch.no_grad():
            for p, s in zip(params, start):
                p.copy_(s)
        optimizer = torch.optim.SGD(params, lr=0.1)
        own_x, own_y = shards[client]
        for rows in torch.randperm(len(own_x)).split(batch):
            optimizer.zero_grad(set_to_none=True)
            F.cross_entropy(model(own_x[rows]), own_y[rows]).backward()
            optimizer.step()
        for m, p in zip(mean, params):
            m.add_(p.detach(), alpha=0.1)  # clients have as many samples
    with torch.no_grad():
        for p, m in zip(params, mean):
            p.copy_(m)
wall, processor = time.perf_counter() - wall, time.process_time() - processor
with torch.no_grad():
    right = sum((model(a).argmax(1) == b).sum().item() for a, b in zip(test_x.split(1000), test_y.split(1000)))
print(f"{wall:.2f} s, {processor:.2f} s of processor time, accuracy {right / len(test_y):.4f}")
