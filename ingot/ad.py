"""Derivatives: gradients in reverse mode, and forward mode.

    with qd.ad.Tape(loss=y):
        compute(x, y)
    x.grad  # d y / d x

A kernel has its gradient as `kernel.grad`, which takes the same arguments: it reads the gradients
of what the kernel wrote and adds to those of what it read. Tape records the launches of a block
and calls their gradients in reverse order. docs/autodiff.md has examples.
"""

from ingot import _core
from ingot._core import (
    Field,
    IngotAssertionError,
    IngotCompilationError,
    IngotRuntimeError,
    MatrixField,
    Ndarray,
    ScalarField,
)

__all__ = [
    "FwdMode",
    "GradCheck",
    "Tape",
    "check_grad",
    "clear_all_gradients",
    "grad_for",
    "grad_replaced",
    "no_grad",
    "torch_function",
]


# ---- gradients of all fields ----


def clear_all_gradients():
    """Sets the gradients of all fields to zero. Those of ndarrays and torch tensors stay."""
    _clear("grad")


def _clear(which):
    from ingot._fields import _all_companions

    for field in _all_companions(which):
        field.fill(0)


# ---- recording ----


class _Quiet:
    """While it is entered, launches are recorded by nobody."""

    def __enter__(self):
        self._before = _core.listen(None)

    def __exit__(self, *error):
        _core.listen(self._before)


def _only_one(loss):
    """Raises unless the loss is one number with a gradient."""
    if isinstance(loss, Field):
        if len(loss.shape) != 0:
            raise IngotRuntimeError("The loss of `Tape` must be a 0-D field, i.e. scalar")
        if not loss.has_grad():
            raise IngotRuntimeError(
                "Gradients of loss are not allocated, please use qd.field(..., needs_grad=True) for all fields "
                "that are required by autodiff.")
        return
    if isinstance(loss, Ndarray):
        count = 1
        for extent in (*loss.shape, *loss.element_shape):
            count *= extent
        if count != 1:
            raise IngotRuntimeError("The loss of `Tape` must be an ndarray with only one element")
        if loss.grad is None:
            raise IngotRuntimeError(
                "Gradients of loss are not allocated, please set needs_grad=True for all ndarrays that are "
                "required by autodiff.")
        return
    if not hasattr(loss, "requires_grad"):
        raise TypeError(f"The loss of `Tape` is a field, an ndarray or a torch tensor, not {type(loss).__name__}")
    if loss.numel() != 1:
        raise IngotRuntimeError("The loss of `Tape` must be a tensor only contains one element")
    if not loss.requires_grad:
        raise IngotRuntimeError(
            "Gradients of loss are not allocated, please set requires_grad=True for all tensors that are required "
            "by autodiff.")


def _fill(array, value):
    if isinstance(array, (Field, Ndarray)):
        array.fill(value)
        return
    import torch

    with torch.no_grad():
        array.fill_(value)


def _gradient(array):
    if isinstance(array, (Field, Ndarray)):
        return array.grad
    from ingot._interop import gradient

    return gradient(array)


class _Recorder:
    """What Tape and FwdMode have in common: a listener while a block runs, restored after it."""

    _entered = False

    def _begin(self, listener):
        self._before = _core.listen(listener)

    def _end(self):
        _core.listen(self._before)


class Tape(_Recorder):
    """Records the launches of a block and computes the gradients of `loss` when it ends.

    loss             a field of shape (), or an ndarray or torch tensor of one element, with a gradient:
                     it is set to 0 when the block begins, its gradient to 1 when it ends, and then the
                     gradients of all launches run, the last one first. None: `tape.grad()` does that,
                     from gradients that were set before
    clear_gradients  set the gradients of all fields to 0 when the block begins; those of ndarrays and
                     torch tensors stay and are added to
    validation       refuse a launch that overwrites what its gradient reads again when it is made, and a
                     gradient for which other launches, or the host, changed that: element by element, by value.
                     Launches run on one thread
    grad_check       fields or ndarrays whose gradients are compared with differences of a loss of f64
    state            arrays that launches read and later ones overwrite: the tape keeps copies of them, and
                     puts back what a launch left before its gradient runs
    memory_budget    how many bytes the copies may take: launches are made again from those that are kept
    """

    def __init__(self, loss=None, clear_gradients=True, validation=False, grad_check=None, *, state=None,
                 memory_budget=None):
        if grad_check is not None and not isinstance(grad_check, (list, tuple)):
            raise TypeError("grad_check is a list of the fields whose gradients are checked")
        self.loss = loss
        self.clear_gradients = clear_gradients
        self.validation = validation
        self.grad_check = list(grad_check or ())
        self.gradient_evaluated = False
        self._calls = []
        self._checked = set()
        self._failed = False
        self._reads = {}  # id of a call -> what its launch read
        if memory_budget is not None and state is None:
            raise TypeError("memory_budget is for copies of `state`: name the arrays that launches overwrite")
        self._copies = None if state is None else _Copies(_numbers_of(state), memory_budget)

    @property
    def calls(self):
        """What was recorded: (kernel or function, arguments) in the order of the calls."""
        return [(call[0], call[1]) for call in self._calls]

    def __enter__(self):
        if self._entered:
            raise AssertionError("Tape can be entered only once.")
        if self.loss is not None:
            _only_one(self.loss)
        self._entered = True
        if self.clear_gradients:
            clear_all_gradients()
        for gradient in _core.partials():
            _fill(gradient, 0)
        if self.loss is not None:
            _fill(self.loss, 0)
        if self.grad_check:
            self._state = _State(_every_field())
        watched = self.grad_check or self.validation or self._copies
        self._begin(self._record if watched else self._calls)
        return self

    def _record(self, kernel, args):
        if self.validation and kernel not in self._checked:
            _check_rule(kernel, args)
            self._checked.add(kernel)
        if self.grad_check:
            self._state.add(array for _, array in _arrays_in(args))
        if self._copies:
            self._copies.before(len(self._calls))
        reads = None
        if self.validation:
            result, reads = _core.launch_watched(kernel, args)
        else:
            result = _core.launch(kernel, args)
        self._calls.append((kernel, args, _core.last_launch(kernel, args)))
        if self._copies:
            self._copies.after()
        if reads is not None:
            self._reads[id(self._calls[-1])] = reads
        return result

    def __exit__(self, kind, error, where):
        self._end()
        if kind is None and self.loss is not None:
            self.grad()

    def grad(self):
        """Runs the gradients of what was recorded, the last launch first."""
        if not self._entered:
            raise AssertionError("Before evaluating gradients tape must be entered.")
        if self.gradient_evaluated:
            raise AssertionError("Gradients of grad can be evaluated only once.")
        if self._failed:
            self._again()
        self._failed = True
        if self.loss is not None:
            _fill(_gradient(self.loss), 1)
        with _Quiet():
            if self._copies:
                self._copies.reverse(self._calls, [] if self.loss is None else [self.loss], self._reads)
            else:
                _reverse(self._calls, self._reads)
            self._failed = False
            self._reads.clear()
            self.gradient_evaluated = True
            if self.grad_check:
                self._check()

    def _again(self):
        """A try that failed left sums of some launches: they go before the next one."""
        if self.loss is None:
            raise IngotRuntimeError("the gradients of this tape ended with an error: set them and record it again")
        for _, args, _ in self._calls:
            for _, array in _arrays_in(args):
                if _has_gradient(array):
                    _fill(_gradient(array), 0)
        clear_all_gradients()

    def _check(self):
        import numpy as np

        if self.loss is None or _dtype_name(self.loss) != "f64":
            raise IngotAssertionError("Only f64 is supported when checking grad.")
        numbers = np.random.default_rng(0)
        arrays = [array for array in self.grad_check if array is not self.loss]
        exact = [_values(_gradient(array)).copy() for array in arrays]
        gradients = _State([_gradient(array) for array in arrays])
        failed = []
        for array, gradient in zip(arrays, exact):
            best = min(self._differences(array, gradient, numbers.random(gradient.shape)), default=0.0)
            if best > 0.01:
                failed.append(f"{_label(array)}: relative error {best:.3g}, expected at most 0.01")
        self._state.restore()
        _replay(self._calls)
        gradients.restore()
        if failed:
            raise IngotAssertionError(
                "Grad check failed: Not all variables pass grad check\n" + "\n".join(failed))

    def _differences(self, array, gradient, direction):
        """Relative errors of the derivative along a direction, for smaller and smaller steps."""
        along = float((gradient * direction).sum())
        for power in range(3, 30, 2):
            step, found = 2.0**-power, []
            for sign in (1, -1):
                self._state.restore()
                _assign(array, _values(array) + sign * step * direction)
                _replay(self._calls)
                found.append(float(_values(self.loss).sum()))
            error = abs((found[0] - found[1]) / (2 * step) - along)
            relative = error / abs(along) if along else error
            yield relative
            if relative <= 0.01:
                return


def _check_rule(kernel, args):
    """Raises if the gradient of the launch would be refused for an element that is read and overwritten."""
    try:
        kernel.grad.lower(*args)
    except IngotCompilationError as error:
        if "is overwritten here" in str(error):
            raise IngotAssertionError(str(error)) from None


def _replay(calls):
    """The same launches once more, with the random numbers that they had."""
    for target, args, how in calls:
        if isinstance(how, dict):
            target.__wrapped__(*args, **how)
        else:
            _core.launch(target, args, how)


def _reverse(calls, reads=None):
    for call in reversed(calls):
        target, args, how = call
        if reads and id(call) in reads:
            _core.unchanged(reads[id(call)])
        if not isinstance(how, dict):
            _core.launch(target.grad, args, how)
        elif target.grad is None:
            raise IngotRuntimeError(
                f"{target.__name__} has no gradient: define it with @qd.ad.grad_for({target.__name__})")
        else:
            target.grad(*args, **how)


class _Copies:
    """What the arrays of `state` held before some of the launches; the others are made again from there."""

    def __init__(self, arrays, budget):
        import math

        self._arrays = arrays
        size = max(1, sum(_bytes(array) for array in arrays))
        self._slots = math.inf if budget is None or math.isinf(budget) else int(budget // size)
        if self._slots < 1:
            raise IngotRuntimeError(
                f"memory_budget={budget} is less than one copy of `state` takes: {size} bytes. With {size} the time "
                "grows with the square of the number of launches, with a tenth of all copies it doubles")
        self._kept = {}  # number of a launch -> the state before it
        self._every, self._next = 1, 0
        self._left = None  # by the last launch: generations, or values where there are none

    def before(self, number):
        """Launch `number` comes. When there is no room, every second copy goes."""
        self.check()
        if number < self._next:
            return
        self._next = number + self._every
        self._kept[number] = _State(self._arrays)
        if len(self._kept) > self._slots:
            self._every *= 2
            numbers = sorted(self._kept)
            for one in numbers[1::2]:
                del self._kept[one]
            self._next = max(self._kept) + self._every

    def after(self):
        """A launch is over."""
        self._left = [_mark(array) for array in self._arrays]

    def check(self):
        """Raises if somebody else wrote the state since: no copy has it, and no gradient knows of it."""
        for array, left in zip(self._arrays, self._left or ()):
            if not _is_as_left(array, left):
                raise IngotRuntimeError(
                    f"{_label(array)} of the tape's `state` was written between two launches, which the tape does "
                    "not record\nhelp: write it in a kernel, or before the block")

    def reverse(self, calls, others, reads):
        """The gradients of all launches, the last one first; each finds what its launch left, since it reads again
        what the launch itself wrote too. Arrays hold afterwards what they did before."""
        self.check()
        self._reads = reads
        last = _State([*self._arrays, *others])
        end = len(calls)
        _reverse(calls[end - 1:end], reads)
        for begin in sorted(self._kept, reverse=True):
            self._between(calls, begin, end)
            self._at(calls, begin)
            end = begin
        _reverse(calls[:max(0, end - 1)], reads)
        last.restore()

    def _at(self, calls, number):
        """The gradient of the launch that left the state before launch `number`, which is kept no more."""
        self._kept.pop(number).restore()
        _reverse(calls[max(0, number - 1):number], self._reads)

    def _between(self, calls, begin, end):
        """The gradients of launches begin .. end - 2; the state before `begin` is kept."""
        room = self._slots - len(self._kept)
        while end - begin > 1:
            self._kept[begin].restore()
            if room >= 1:
                middle = begin + _split(end - begin, min(room, 200))
                _replay(calls[begin:middle])
                self._kept[middle] = _State(self._arrays)
                self._between(calls, middle, end)
                self._at(calls, middle)
                end = middle
            else:
                _replay(calls[begin:end - 1])
                _reverse(calls[end - 2:end - 1], self._reads)
                end -= 1


def _split(count, room):
    """After how many of `count` launches the next copy is best made, with room for so many (binomial)."""
    if room >= count - 1:
        return 1
    repeats, reach = 1, 1 + room
    while reach < count:  # launches that can be reversed if each is made again so many times
        repeats += 1
        reach = reach * (room + repeats) // repeats
    return max(1, min(count - 1, reach * repeats // (room + repeats)))


def _mark(array):
    """What tells later whether an array was written: its generation, or what it holds."""
    known = isinstance(array, (Field, Ndarray)) and array._generation
    return known or _State([array])


def _is_as_left(array, left):
    if isinstance(left, int):
        return array._generation == left
    import numpy as np

    return all(np.array_equal(_values(array), _values(kept), equal_nan=True) for _, kept in left._kept.values())


def _numbers_of(arrays):
    """The fields that hold the numbers of these, in place of fields made of others."""
    found = []
    for array in arrays:
        if isinstance(array, Field) and _has_parts(array):
            found += _numbers_of(getattr(array, "_parts", None) or [getattr(array, key) for key in array.keys])
        else:
            found.append(array)
    return found


def _bytes(array):
    if _is_torch(array):
        return array.numel() * array.element_size()
    return array.nbytes if _is_numpy(array) else array.to_numpy().nbytes


# ---- gradients by hand ----


def grad_replaced(func):
    """A Python function whose gradient is another one, given by @qd.ad.grad_for(func): Tape records
    the call instead of the launches in it."""
    import functools

    @functools.wraps(func)
    def replaced(*args, **kwargs):
        before = _core.listen(None)
        copies = getattr(getattr(before, "__self__", None), "_copies", None)
        try:
            if copies:
                copies.check()
            result = func(*args, **kwargs)
        finally:
            _core.listen(before)
        _told(before, replaced, args, kwargs)
        if copies:
            copies.after()
        return result

    replaced.grad = None
    return replaced


def _told(listener, function, args, kwargs):
    calls = listener if isinstance(listener, list) else getattr(getattr(listener, "__self__", None), "_calls", None)
    if calls is not None:
        calls.append((function, args, kwargs))


def grad_for(primal):
    """Makes the decorated function the gradient of `primal`, which is @qd.ad.grad_replaced."""

    def decorate(func):
        if not hasattr(primal, "grad"):
            raise IngotRuntimeError(
                f"Primal function `{getattr(primal, '__name__', primal)}` must be decorated by qd.ad.grad_replaced")
        if primal.grad is not None:
            raise IngotRuntimeError(
                "Primal function must be a **python** function instead of a kernel, and have no gradient yet. "
                "Please wrap the kernel in a @qd.ad.grad_replaced decorated python function instead.")
        primal.grad = func
        return func

    return decorate


def no_grad(func):
    """A Python function through which no gradients go: what it launches is recorded by no Tape."""
    replaced = grad_replaced(func)

    def nothing(*args, **kwargs):
        pass

    replaced.grad = nothing
    return replaced


# ---- forward mode ----


def _launch_forward(kernel, args):
    return _core.launch(kernel.dual, args)


_launch_forward._no_gradients = True  # seen by launches of gradients (companion.c)


class FwdMode(_Recorder):
    """Forward mode: the launches of a block also compute derivatives along a direction.

    loss             a field of numbers with a dual, or a list of such; `loss.dual` gets the derivatives
    param            the field of numbers, with a dual, that the derivatives are by
    seed             the direction: a number for each element of `param`, by default [1.0] where it has one
    clear_gradients  set the duals of all fields to 0 when the block begins
    """

    def __init__(self, loss, param, seed=None, clear_gradients=True):
        self.loss = loss if isinstance(loss, list) else [loss]
        self.param = param
        self.seed = seed
        self.clear_gradients = clear_gradients

    def __enter__(self):
        if self._entered:
            raise AssertionError("Forward mode manager can be entered only once.")
        for field in (*self.loss, self.param):
            if not isinstance(field, ScalarField):
                raise AssertionError(f"loss and param of FwdMode are fields of numbers, not {type(field).__name__}")
        if not self.param.has_dual():
            raise IngotRuntimeError(
                "Duals of param are not allocated: make it with needs_dual=True, or call qd.root.lazy_dual()")
        count = 1
        for extent in self.param.shape:
            count *= extent
        seed = self.seed if self.seed is not None and len(self.seed) else [1.0] if count == 1 else None
        if seed is None:
            raise IngotRuntimeError(
                "`seed` is not set for non 0-D field, please specify: a list with a number for each element of "
                "`param`. seed=[0, 0, 1] asks for the derivative by the third one, seed=[1, 1, 1] for the sum of "
                "those by all three, a Jacobian-vector product")
        if len(seed) != count:
            raise AssertionError(f"seed has {len(seed)} numbers, param {count} elements")
        self._entered = True
        if self.clear_gradients:
            _clear("dual")
        import numpy as np

        dual = self.param.dual
        dual.from_numpy(np.array(seed, dtype=np.float64).reshape(self.param.shape).astype(_numpy_dtype(dual)))
        self._begin(_launch_forward)
        return self

    def __exit__(self, kind, error, where):
        self._end()
        self.param.dual.fill(0)


# ---- arrays of every kind ----


def _is_torch(array):
    return type(array).__module__.partition(".")[0] == "torch" and hasattr(array, "requires_grad")


def _is_numpy(array):
    import sys

    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(array, numpy.ndarray)


def _is_array(array):
    return isinstance(array, (Field, Ndarray)) or _is_numpy(array) or _is_torch(array)


def _arrays_in(values):
    """(where, array) of every array in these arguments, in containers and objects too."""
    found, seen = [], set()
    left = [(f"argument {k}", value) for k, value in enumerate(values)]
    left.reverse()
    while left:
        where, value = left.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        if _is_array(value):
            found.append((where, value))
        elif isinstance(value, (list, tuple)):
            left += [(f"{where}[{k}]", one) for k, one in enumerate(value)]
        elif isinstance(value, dict):
            left += [(f"{where}[{k!r}]", one) for k, one in value.items()]
        elif not isinstance(value, type) and hasattr(value, "__dict__"):
            left += [(f"{where}.{name}", one) for name, one in vars(value).items()]
    return found


def _has_parts(field):
    return getattr(field, "_parts", None) is not None or isinstance(field, Field) and not hasattr(field, "_levels")


def _every_field():
    """All fields that hold numbers themselves and have a place."""
    import gc

    found = [one for one in gc.get_objects() if type(one) in (ScalarField, MatrixField)]
    return [one for one in found if not _has_parts(one) and one._levels is not None and one._exists]


def _values(array):
    """The numbers of an array as a NumPy array of f64."""
    import numpy as np

    if _is_torch(array):
        return array.detach().cpu().numpy().astype(np.float64)
    return np.asarray(array if _is_numpy(array) else array.to_numpy(), np.float64)


def _numpy_dtype(array):
    import numpy as np

    return {"f16": np.float16, "f32": np.float32, "f64": np.float64}[_dtype_name(array)]


def _dtype_name(array):
    names = {"float16": "f16", "float32": "f32", "float64": "f64"}
    name = str(array.dtype).rpartition(".")[2]
    return names.get(name, name)


def _assign(array, values):
    import numpy as np

    if _is_torch(array):
        import torch

        with torch.no_grad():
            array.copy_(torch.from_numpy(np.array(values, order="C")))
    elif _is_numpy(array):
        array[...] = values
    else:
        array.from_numpy(np.array(values, dtype=array.to_numpy().dtype, order="C"))


def _label(array):
    name = getattr(array, "name", "")
    return f"field {name}" if isinstance(array, Field) and name else f"{type(array).__name__} {tuple(array.shape)}"


class _State:
    """What arrays hold, to be put back."""

    def __init__(self, arrays):
        self._kept = {}
        self.add(arrays)

    def add(self, arrays):
        for array in arrays:
            if id(array) in self._kept or _has_parts(array):
                continue
            if _is_torch(array):
                self._kept[id(array)] = array, array.detach().clone()
            else:
                self._kept[id(array)] = array, array.copy() if _is_numpy(array) else array.to_numpy()

    def restore(self):
        for array, values in self._kept.values():
            if _is_torch(array):
                import torch

                with torch.no_grad():
                    array.copy_(values)
            elif _is_numpy(array):
                if array.flags.writeable:
                    array[...] = values
            else:
                array.from_numpy(values)


# ---- comparison with differences ----


class GradCheck:
    """What `check_grad` found: `entries` are (array, index, gradient, difference, error), the worst first;
    an error above 1 is too large."""

    def __init__(self, name, entries):
        self.name = name
        self.entries = sorted(entries, key=lambda entry: -entry[4])
        self.ok = all(entry[4] <= 1 for entry in self.entries)

    def __repr__(self):
        rows = [f"gradients of {self.name}: {len(self.entries)} entries compared, {'right' if self.ok else 'WRONG'}"]
        for where, index, exact, difference, error in self.entries[:8]:
            rows.append(f"  {where}{list(index)}: gradient {exact:.9g}, difference {difference:.9g} "
                        f"({error:.3g} of what is allowed)")
        return "\n".join(rows)


_STEPS = {"f16": (0.1, 0.05, 1e-3), "f32": (1e-2, 2e-3, 1.2e-7), "f64": (1e-5, 1e-6, 2.3e-16)}


def check_grad(kernel, *args, entries=32, seed=0, rtol=None, **kwargs):
    """Compares `kernel.grad` with central differences at these arguments; returns a GradCheck.

    Every array with a gradient counts: arguments, and fields. Their gradients are set to random
    numbers, and what `kernel.grad` makes of them is compared for up to `entries` elements of each array.
    All arrays and fields have their contents again afterwards. An IngotAssertionError shows the
    worst entries if one is wrong by more than `rtol` allows (by default 1e-6 for f64, 2e-3 for f32).
    """
    import numpy as np

    numbers = np.random.default_rng(seed)
    given = _arrays_in([*args, *kwargs.values(), getattr(kernel, "__self__", None)])
    fields = _every_field()
    state = _State([*fields, *(array for _, array in given)])
    active = [(where, one) for where, one in given if _has_gradient(one) and not isinstance(one, Field)]
    active += [(_label(one), one) for one in fields if one.has_grad()]
    gradients = _State([_gradient(one) for _, one in active])
    calls = []
    with _Quiet():
        before = _core.listen(calls)
        try:
            kernel(*args, **kwargs)
        finally:
            _core.listen(before)
        weights = [numbers.standard_normal(_values(one).shape) for _, one in active]
        for (_, one), weight in zip(active, weights):
            _assign(_gradient(one), weight)
        weights = [_values(_gradient(one)) for _, one in active]  # as they are after rounding
        _reverse(calls)
        exact = [_values(_gradient(one)) for _, one in active]
        found = []
        for (where, one), gradient in zip(active, exact):
            step, allowed, rounding = _STEPS[_dtype_name(one)]
            allowed = rtol or allowed
            for index in _chosen(gradient.shape, entries, numbers):
                sides, size = [], 1.0
                for sign in (1, -1):
                    state.restore()
                    values = _values(one)
                    h = step * max(1.0, abs(float(values[index])))
                    values[index] += sign * h
                    _assign(one, values)
                    at = float(_values(one)[index])
                    _replay(calls)
                    terms = [_values(a) * w for (_, a), w in zip(active, weights)]
                    size = max(size, *(float(np.abs(term).sum()) for term in terms))
                    sides.append((at, sum(float(term.sum()) for term in terms)))
                difference = (sides[0][1] - sides[1][1]) / (sides[0][0] - sides[1][0])
                noise = 8 * rounding * size / h
                error = abs(difference - gradient[index]) / (allowed * max(1.0, abs(difference)) + noise)
                found.append((where, index, float(gradient[index]), difference, float(error)))
        state.restore()
        gradients.restore()
    report = GradCheck(getattr(kernel, "__name__", repr(kernel)), found)
    if not report.ok:
        raise IngotAssertionError(repr(report))
    return report


def _has_gradient(array):
    if _is_torch(array):
        return array.requires_grad
    return isinstance(array, Ndarray) and array.grad is not None


def _chosen(shape, entries, numbers):
    """Up to so many indices of an array."""
    import numpy as np

    count = int(np.prod(shape, dtype=np.int64))
    chosen = range(count) if count <= entries else sorted(numbers.choice(count, entries, replace=False).tolist())
    return [tuple(int(i) for i in np.unravel_index(k, shape)) for k in chosen] if shape else [()] * (count > 0)


# ---- torch ----


def torch_function(kernel, outputs):
    """A kernel over torch tensors as a function that torch differentiates.

    outputs  which parameters of the kernel are its results: a dict from the name to the shape, or to a
             function of the other arguments (by their names) that returns the shape, or (shape, dtype)

        f = qd.ad.torch_function(kernel, {"y": lambda x, n: x.shape})
        y = f(x, 3)

    The other parameters are the function's, in order. The results start as zeros, in the dtype of the first
    tensor of floats. Tensors are read as they are; gradients flow to those that require one.
    """
    from ingot import _torch

    return _torch.function(kernel, outputs)
