"""What programs of ad_programs.py are made of: expressions, statements, arrays, scopes."""

import re


class Expr:
    """kind: f, i, b, v, m (vectors of K, matrices K x K); size: a bound of its magnitude; of
    integers `span`, the values from low to high."""

    def __init__(self, kind, text, parts=(), size=1.0, span=None):
        self.kind, self.text, self.parts, self.size, self.span = kind, text, list(parts), size, span

    def write(self):
        return self.text.format(*(p.write() for p in self.parts))


class Stmt:
    """A line, or a head with a block and perhaps another one after `else:`."""

    def __init__(self, text, parts=(), body=None, other=None):
        self.text, self.parts, self.body, self.other = text, list(parts), body, other

    def write(self, depth):
        pad = "    " * depth
        line = pad + self.text.format(*(p.write() for p in self.parts)) + "\n"
        if self.body is None:
            return line
        line += write_block(self.body, depth + 1)
        return line + (pad + "else:\n" + write_block(self.other, depth + 1) if self.other else "")


class Stopped(Stmt):
    """A task in which what is read of one input is a constant: by qd.stop_grad, or (`twin`, for oracles) because
    another array with the same numbers is read."""

    twin = False

    def __init__(self, name, loop):
        super().__init__(loop.text, loop.parts, loop.body, loop.other)
        self.name = name

    def write(self, depth):
        if Stopped.twin:
            return re.sub(rf"\b{self.name}\b", self.name + "k", super().write(depth))
        pad = "    " * (depth + 1)
        head, _, rest = super().write(depth).partition("\n")
        return f"{head}\n{pad}qd.stop_grad({self.name})\n{rest}"


def write_block(body, depth):
    return "".join(s.write(depth) for s in body) or "    " * depth + "pass\n"


class Data:
    """An array of the program. role: in, const, int, mid, out, sum, low, high; kind: f i v m s;
    home: nd, torch, field, numpy; how: arg, template, global; soa, offset: of fields; twin: the input whose numbers
    a constant has."""

    offset, twin = 0, None

    def __init__(self, name, role, kind, axes, home, how, soa=False, top=None):
        self.name, self.role, self.kind, self.axes, self.home = name, role, kind, axes, home
        self.how, self.soa, self.top = how, soa, top  # top: integers are below it


class Scope:
    """What statements see: variables (name -> Expr-like), and where they are."""

    def __init__(self, vars, loops=0, dynamic=0, static=0, inside=None, func=False, top=False):
        self.vars, self.loops, self.dynamic, self.static = vars, loops, dynamic, static
        self.inside, self.func = inside, func  # inside: the kind of loop that break would leave
        self.top = top  # of the outermost level, where funcs that break out of loops are not called

    def inner(self, **changes):
        new = Scope(dict(self.vars), self.loops, self.dynamic, self.static, self.inside, self.func, self.top)
        for k, v in changes.items():
            setattr(new, k, v)
        return new

    def of(self, kind):
        return [(n, v) for n, v in self.vars.items() if v.kind == kind]


class Var:
    def __init__(self, kind, size=1.0, span=None, carried=False):
        self.kind, self.size, self.span, self.carried = kind, size, span, carried
