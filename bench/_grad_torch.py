"""Rows of grad.py in PyTorch, as a user writes them: one line of JSON for each, with the processor time of a
forward pass and of the backward pass on one thread.

    _grad_torch.py REPEAT
"""

import json
import sys
import time

import torch

torch.set_num_threads(1)
torch.manual_seed(0)


def squares(x):
    return (x * x).sum()


def oscillator(x, p):
    a, v = x, torch.zeros_like(x)
    for _ in range(200):
        v = v + 0.01 * (-p[0] * a - p[1] * v)
        a = a + 0.01 * v
    return (a * a).sum()


def nbody(x):
    d = x[None, :, :] - x[:, None, :]
    r = 1.0 / ((d * d).sum(-1) + 0.01)
    return (d * (r * r)[..., None]).sum(1)


def matmul(a, b):
    return a @ b


def springs(x, v, k, first, second):
    d = x[second] - x[first]
    length = torch.sqrt((d * d).sum(-1) + 1e-6)
    force = (0.01 * k * (length - 0.1) / length)[:, None] * d
    out = torch.zeros_like(x).index_add(0, first, force + 0.001 * v[first])
    return out.index_add(0, second, -force)


def rows():
    def real(*shape):
        return torch.rand(*shape, requires_grad=True)

    ends = [torch.randint(0, 1 << 14, (1 << 16,)) for _ in range(2)]
    return [
        ("sum of squares", squares, (real(1 << 20),)),
        ("oscillator, 200 steps", oscillator, (real(1 << 13), torch.tensor([2, 0.1], requires_grad=True))),
        ("n-body forces", nbody, (real(1 << 10, 2),)),
        ("matrix product", matmul, (real(192, 192), real(192, 192))),
        ("springs", springs, (real(1 << 14, 2), real(1 << 14, 2), real(1 << 16), *ends)),
    ]


def main():
    for name, function, args in rows():
        forward = backward = float("inf")
        for _ in range(int(sys.argv[1]) + 1):
            start = time.process_time()
            out = function(*args)
            middle = time.process_time()
            out.backward(torch.ones_like(out))
            end = time.process_time()
            forward, backward = min(forward, middle - start), min(backward, end - middle)
        print(json.dumps({"name": name, "forward": forward, "backward": backward}), flush=True)


if __name__ == "__main__":
    main()
