"""The smallest useful program: y = a x + y over a million floats, in parallel."""

from typing import Literal

import numpy as np

import ingot as qd

F1 = qd.types.NDArray[qd.f32, Literal[1]]

qd.init()


@qd.kernel
def saxpy(a: qd.f32, x: F1, y: F1) -> None:
    for i in range(x.shape[0]):
        y[i] = a * x[i] + y[i]


n = 1_000_000
x = qd.ndarray(qd.f32, n)
y = qd.ndarray(qd.f32, n)
x.from_numpy(np.arange(n, dtype=np.float32))
y.fill(1.0)
saxpy(2.0, x, y)
assert (y.to_numpy() == 2.0 * np.arange(n, dtype=np.float32) + 1.0).all()
print("y[10] =", y[10])
