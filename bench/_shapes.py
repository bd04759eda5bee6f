"""Kernels of one shape and any length, whose compile times tell how the compiler grows.

`SHAPES` maps a name to a function of a number of lines: the text of a module with a kernel `k`
of one array of f32, about that many lines long. `qd` is the package under test."""

HEAD = "import qd\nArray = qd.types.ndarray(qd.f32, 1)\n"
KERNEL = "@qd.kernel\ndef k(x: Array):\n    for i in range(x.shape[0]):\n"


def _kernel(body, indent=8, head=""):
    return HEAD + head + KERNEL + "\n".join(" " * indent + line for line in body) + "\n"


def branches(lines):
    """One loop with statements on two locals, in branches of eight."""
    body = ["a = x[i]", "b = a + 1.0"]
    for n in range(lines):
        if n % 8 == 0:
            body.append(f"if a > {n}.5:")
        body.append(f"    a = a * 0.{n % 7 + 1} + b - {n + 7}.0" if n % 2
                    else f"    b = b + a * {n % 5 + 1}.5")
    return _kernel([*body, "x[i] = a + b"])


def assigns(lines):
    return _kernel([f"x[i] = x[i] * 0.{n % 7 + 1} + {n}.0" for n in range(lines)])


def locals_(lines):
    """Each line a local of its own, made of the one before."""
    body = ["v0 = x[i]"] + [f"v{n} = v{n - 1} * 0.5 + {n}.0" for n in range(1, lines)]
    return _kernel([*body, f"x[i] = v{lines - 1}"])


def updates(lines):
    return _kernel([f"x[i] += {n}.5" for n in range(lines)])


def scattered(lines):
    """Updates that stay atomic: nothing tells that iterations meet different elements."""
    return _kernel([f"x[i * i % {n + 2}] += {n}.5" for n in range(lines)])


def sums(lines):
    """Updates of few places: some go to lanes."""
    return _kernel([f"x[{n % 24}] += {n}.5" for n in range(lines)])


def serial(lines):
    loop = "    qd.loop_config(serialize=True)\n    for i in range("
    return _kernel([f"x[{n % 64}] += x[i] * 0.{n % 7 + 1}" for n in range(lines)]).replace(
        "    for i in range(", loop, 1)


def loops(lines):
    """Small parallel loops one after the other: each is a task."""
    return HEAD + "@qd.kernel\ndef k(x: Array):\n" + "".join(
        f"    for i in range(x.shape[0]):\n        x[i] = x[i] * 0.5 + {n}.0\n"
        for n in range(lines // 2))


def inner_loops(lines):
    body = []
    for n in range(lines // 3):
        body += [f"for j in range({n % 60 + 1}):", f"    s = x[j] * 0.5 + {n}.0", "    x[i] = s"]
    return _kernel(body)


def nested_ifs(lines):
    """Ten deep, again and again."""
    body = ["a = x[i]"]
    for n in range(lines):
        depth = n % 20
        if depth < 10:
            body.append("    " * depth + f"if a > {n}.5:")
        else:
            body.append("    " * (20 - depth) + f"a = a * 0.5 + {n}.0")
    return _kernel([*body[:-(lines % 20) or None], "x[i] = a"])


def whiles(lines):
    body = ["a = x[i]"]
    for n in range(lines // 3):
        body += [f"while a > {n}.5:", "    a = a - 1.0", f"    x[i] = a + {n}.0"]
    return _kernel(body)


def arrays(lines):
    """Many captured arrays."""
    count = max(lines // 4, 1)
    head = "".join(f"y{n} = qd.ndarray(qd.f32, 64)\n" for n in range(count))
    return _kernel([f"y{n % count}[i] = x[i] + {n}.0" for n in range(lines)], head=head)


def array_updates(lines):
    count = max(lines // 4, 1)
    head = "".join(f"y{n} = qd.ndarray(qd.f32, 64)\n" for n in range(count))
    return _kernel([f"y{n % count}[i] += x[i] + {n}.0" for n in range(lines)], head=head)


def funcs(lines):
    """Many funcs, each called once."""
    count = max(lines // 4, 1)
    head = "".join(f"@qd.func\ndef f{n}(a, b):\n    c = a * {n}.5 + b\n    return c - b * 0.5\n"
                   for n in range(count))
    return _kernel(["a = x[i]", *(f"a = f{n}(a, {n}.0)" for n in range(count)), "x[i] = a"],
                   head=head)


def calls(lines):
    """Few funcs, called again and again."""
    head = "".join(f"@qd.func\ndef f{n}(a, b):\n    return a * {n}.5 + b\n" for n in range(16))
    return _kernel(["a = x[i]", *(f"a = f{n % 16}(a, {n}.0)" for n in range(lines)), "x[i] = a"],
                   head=head)


def ref_calls(lines):
    """Funcs that are given the array and update it."""
    head = "".join(f"@qd.func\ndef f{n}(y: qd.template(), i):\n    y[i] += {n}.5\n"
                   for n in range(16))
    body = [f"f{n % 16}(x, i)" if n % 2 else f"x[i] += {n}.0" for n in range(lines)]
    return _kernel(body, head=head)


def vectors(lines):
    body = ["v = qd.Vector([x[i], 1.0, 2.0])"]
    for n in range(lines):
        body.append(f"v = v * 0.5 + qd.Vector([{n}.0, x[i], 1.0])" if n % 2
                    else f"v[{n % 3}] = v.dot(v) + {n}.0")
    return _kernel([*body, "x[i] = v[0] + v[1]"])


def matrices(lines):
    body = ["m = qd.Matrix([[x[i], 1.0], [2.0, 3.0]])"]
    body += [f"m = m @ m + {n}.0" for n in range(lines)]
    return _kernel([*body, "x[i] = m[0, 0]"])


def structs(lines):
    head = "P = qd.types.struct(a=qd.f32, b=qd.f32)\n"
    body = ["p = P(a=x[i], b=1.0)"]
    body += [f"p.{'ab'[n % 2]} = p.{'ba'[n % 2]} * 0.5 + {n}.0" for n in range(lines)]
    return _kernel([*body, "x[i] = p.a"], head=head)


def static_loop(lines):
    return _kernel(["a = x[i]", f"for n in qd.static(range({lines})):", "    a = a * 0.5 + n",
                    "x[i] = a"])


def elifs(lines):
    """One chain."""
    body = ["a = x[i]"]
    for n in range(lines // 2):
        body += [f"{'elif' if n else 'if'} a > {n}.5:", f"    a = a * 0.5 + {n}.0"]
    return _kernel([*body, "x[i] = a"])


SHAPES = {f.__name__.strip("_"): f for f in (
    branches, assigns, locals_, updates, scattered, sums, serial, loops, inner_loops, nested_ifs,
    whiles, arrays, array_updates, funcs, calls, ref_calls, vectors, matrices,
    structs, static_loop, elifs)}
