"""The kernels of compute.py, written once for Ingot, Quadrants and Taichi: `define(qd)` takes
the module that plays. Nothing here is tuned for any of them."""

LOOPS = 20  # of the prefix sum: 2 ** 20 elements


def define(qd, array):
    """Kernels by name. `array(dtype, ndim)` is the annotation of an array argument."""
    f1, f2, f3, i1 = array(qd.f32, 1), array(qd.f32, 2), array(qd.f32, 3), array(qd.i32, 1)
    i2 = array(qd.i32, 2)

    @qd.kernel
    def saxpy(a: qd.f32, x: f1, y: f1):
        for i in range(x.shape[0]):
            y[i] = a * x[i] + y[i]

    @qd.kernel
    def stencil(a: f2, b: f2):
        for i, j in qd.ndrange((1, a.shape[0] - 1), (1, a.shape[1] - 1)):
            b[i, j] = 0.5 * a[i, j] + 0.125 * (a[i - 1, j] + a[i + 1, j] + a[i, j - 1] + a[i, j + 1])

    @qd.kernel
    def stencil3d(a: f3, b: f3):
        for i, j, k in qd.ndrange((1, a.shape[0] - 1), (1, a.shape[1] - 1), (1, a.shape[2] - 1)):
            b[i, j, k] = 0.4 * a[i, j, k] + 0.1 * (
                a[i - 1, j, k] + a[i + 1, j, k] + a[i, j - 1, k] + a[i, j + 1, k]
                + a[i, j, k - 1] + a[i, j, k + 1])

    @qd.kernel
    def nbody(p: f2, f: f2):
        for i in range(p.shape[1]):
            x, y, z = p[0, i], p[1, i], p[2, i]
            fx, fy, fz = 0.0, 0.0, 0.0
            for j in range(p.shape[1]):
                dx, dy, dz = p[0, j] - x, p[1, j] - y, p[2, j] - z
                d = dx * dx + dy * dy + dz * dz + 0.01
                w = 1.0 / (d * qd.sqrt(d))
                fx += dx * w
                fy += dy * w
                fz += dz * w
            f[0, i] = fx
            f[1, i] = fy
            f[2, i] = fz

    @qd.kernel
    def sum_sin(x: f1, s: f1):
        for i in range(x.shape[0]):
            s[0] += qd.sin(x[i])

    @qd.kernel
    def exp_cos(x: f1, y: f1):
        for i in range(x.shape[0]):
            y[i] = qd.exp(x[i]) * qd.cos(x[i])

    @qd.kernel
    def matmul(a: f2, b: f2, c: f2):
        for i, j in qd.ndrange(a.shape[0], b.shape[1]):
            t = 0.0
            for k in range(a.shape[1]):
                t += a[i, k] * b[k, j]
            c[i, j] = t

    @qd.kernel
    def histogram(x: i1, bins: i1):
        for i in range(x.shape[0]):
            bins[x[i]] += 1

    @qd.kernel
    def mandelbrot(n: i2):
        for i, j in qd.ndrange(n.shape[0], n.shape[1]):
            cr = -2.0 + 3.0 * j / n.shape[1]
            ci = -1.5 + 3.0 * i / n.shape[0]
            zr, zi = 0.0, 0.0
            k = 0
            while k < 200 and zr * zr + zi * zi < 4.0:
                t = zr * zr - zi * zi + cr
                zi = 2.0 * zr * zi + ci
                zr = t
                k += 1
            n[i, j] = k

    @qd.kernel
    def prefix(a: i1, b: i1):
        for d in qd.static(range(0, LOOPS, 2)):
            for i in range(2**d):
                b[i] = a[i]
            for i in range(2**d, a.shape[0]):
                b[i] = a[i] + a[i - 2**d]
            for i in range(2**(d + 1)):
                a[i] = b[i]
            for i in range(2**(d + 1), a.shape[0]):
                a[i] = b[i] + b[i - 2**(d + 1)]

    return {k: v for k, v in locals().items() if k in SIZES}


SIZES = {
    "saxpy": 16 << 20, "stencil": 2048, "stencil3d": 256, "nbody": 4096, "sum_sin": 16 << 20,
    "exp_cos": 16 << 20, "matmul": 512, "histogram": 16 << 20, "mandelbrot": 1024,
    "prefix": 1 << LOOPS,
}


def inputs(np, name, n):
    """The arrays that a kernel takes, as NumPy arrays, the same for every peer."""
    rng = np.random.default_rng(1)
    f4, i4 = np.float32, np.int32
    if name in ("saxpy", "exp_cos"):
        return [rng.random(n, dtype=f4), np.zeros(n, f4)]
    if name == "sum_sin":
        return [rng.random(n, dtype=f4) * f4(3.0), np.zeros(1, f4)]
    if name == "stencil":
        return [rng.random((n, n), dtype=f4), np.zeros((n, n), f4)]
    if name == "stencil3d":
        return [rng.random((n, n, n), dtype=f4), np.zeros((n, n, n), f4)]
    if name == "nbody":
        return [rng.random((3, n), dtype=f4), np.zeros((3, n), f4)]
    if name == "matmul":
        return [rng.random((n, n), dtype=f4), rng.random((n, n), dtype=f4), np.zeros((n, n), f4)]
    if name == "histogram":
        return [rng.integers(0, 256, n, dtype=i4), np.zeros(256, i4)]
    if name == "mandelbrot":
        return [np.zeros((n, n), i4)]
    return [rng.integers(0, 100, n, dtype=i4), np.zeros(n, i4)]
