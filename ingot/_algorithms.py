"""Reductions, scans, selections and sorts of whole arrays: what `qd.algorithms` names.

Funcs for the outermost block of a kernel, where their loops are the kernel's parallel loops. Work is
cut into blocks of a fixed size, so that no result depends on the number of threads: a pass counts or
sums up each block into `scratch`, a short serial one makes offsets of that, and a last one writes.
"""

from ingot._annotations import template
from ingot._core import f32, f64, i32, i64, ndarray, u32, u64
from ingot._decorators import func, kernel
from ingot._ops import atomic_max, atomic_min, bit_cast, cast, max, min, static, static_assert

_BLOCK = 4096  # elements; far more than the cost of a block, and no more blocks than scratch slots
_INF = float("inf")


# ---- scratch ------------------------------------------------------------------------------------


def _levels(n, depth):
    """How many partial results a tree of 256 has above n elements, without its root."""
    if depth is None:
        depth = 1
        while 256**depth < n:
            depth += 1
    if not 1 <= depth <= 4:
        raise ValueError(f"log256_max_n is a number from 1 to 4, not {depth}")
    return sum(-(-n // 256**k) for k in range(1, depth))


def _at_least(least, n):
    return n if n > least else least


def reduce_scratch_slots(N, log256_max_n=None):
    """How many elements `scratch` of reduce_add, reduce_min and reduce_max needs."""
    return _at_least(1, _levels(N, log256_max_n))


def exclusive_scan_scratch_slots(N, log256_max_n=None):
    """How many elements `scratch` of the scans needs."""
    return _at_least(1, _levels(N, log256_max_n))


def select_scratch_slots(N):
    """How many elements `scratch` of select needs."""
    return N + _at_least(1, _levels(N, None))


def reduce_by_key_scratch_slots(N):
    """How many elements `scratch` of reduce_by_key_add needs."""
    return _at_least(1, N + _levels(N, None))


def sort_scratch_slots(N, log256_max_n=None):
    """How many elements `scratch` of sort needs."""
    counters = 256 * -(-N // 256)
    depth = log256_max_n
    if depth is None:
        depth = 1
        while 256**depth < N:
            depth += 1
    return _at_least(1, counters + _levels(counters, depth))


# ---- sums, least and greatest -------------------------------------------------------------------


@func
def _first(arr):
    """The index of the first element: that of a field with an offset is not 0."""
    if static(hasattr(arr, "offset")):
        if static(arr.ndim == 1):
            return arr.offset[0]
        else:
            return 0
    else:
        return 0


@func
def _identity(kind: template(), dtype: template()):
    """What changes nothing when combined."""
    static_assert(dtype == i32 or dtype == u32 or dtype == f32 or dtype == i64 or dtype == u64 or dtype == f64,
                  "the dtype is one of i32, u32, f32, i64, u64 and f64")
    if static(kind == "add"):
        return cast(0, dtype)
    elif static(dtype == f32 or dtype == f64):
        return cast(_INF if kind == "min" else -_INF, dtype)
    elif static(dtype == i32):
        return cast(2147483647 if kind == "min" else -2147483648, dtype)
    elif static(dtype == i64):
        return cast(9223372036854775807 if kind == "min" else -9223372036854775808, dtype)
    elif static(kind == "max"):
        return cast(0, dtype)
    elif static(dtype == u32):
        return cast(4294967295, dtype)
    else:
        return ~cast(0, dtype)


@func
def _combine(kind: template(), x, y):
    if static(kind == "add"):
        return x + y
    elif static(kind == "min"):
        return min(x, y)
    else:
        return max(x, y)


@func(requires_top_level=True)
def _reduce(kind: template(), arr, out, n, dtype: template()):
    a0, o0 = _first(arr), _first(out)
    total = _identity(kind, dtype)
    for i in range(n):
        if static(kind == "add"):
            total += arr[a0 + i]
        elif static(kind == "min"):
            atomic_min(total, arr[a0 + i])
        else:
            atomic_max(total, arr[a0 + i])
    out[o0] = total


@func(requires_top_level=True)
def reduce_add(arr, out, scratch, n, dtype: template(), log256_max_n: template()):
    """out[0] = the sum of the first n elements."""
    _reduce("add", arr, out, n, dtype)


@func(requires_top_level=True)
def reduce_min(arr, out, scratch, n, dtype: template(), log256_max_n: template()):
    """out[0] = the least of the first n elements."""
    _reduce("min", arr, out, n, dtype)


@func(requires_top_level=True)
def reduce_max(arr, out, scratch, n, dtype: template(), log256_max_n: template()):
    """out[0] = the greatest of the first n elements."""
    _reduce("max", arr, out, n, dtype)


# ---- scans --------------------------------------------------------------------------------------


@func(requires_top_level=True)
def _scan(kind: template(), arr, out, scratch, n, dtype: template()):
    a0, s0, o0 = _first(arr), _first(scratch), _first(out)
    blocks = (n + _BLOCK - 1) // _BLOCK
    for b in range(blocks):
        total = _identity(kind, dtype)
        for i in range(b * _BLOCK, min(n, (b + 1) * _BLOCK)):
            total = _combine(kind, total, arr[a0 + i])
        scratch[s0 + b] = bit_cast(total, scratch.dtype)
    before = _identity(kind, dtype)
    k = 0
    while k < blocks:
        block = bit_cast(scratch[s0 + k], dtype)
        scratch[s0 + k] = bit_cast(before, scratch.dtype)
        before = _combine(kind, before, block)
        k += 1
    for b in range(blocks):
        total = bit_cast(scratch[s0 + b], dtype)
        for i in range(b * _BLOCK, min(n, (b + 1) * _BLOCK)):
            x = arr[a0 + i]
            out[o0 + i] = total
            total = _combine(kind, total, x)


@func(requires_top_level=True)
def exclusive_scan_add(arr, out, scratch, n, dtype: template(), log256_max_n: template()):
    """out[i] = the sum of the elements before i; out may be arr."""
    _scan("add", arr, out, scratch, n, dtype)


@func(requires_top_level=True)
def exclusive_scan_min(arr, out, scratch, n, dtype: template(), log256_max_n: template()):
    """out[i] = the least of the elements before i; out may be arr."""
    _scan("min", arr, out, scratch, n, dtype)


@func(requires_top_level=True)
def exclusive_scan_max(arr, out, scratch, n, dtype: template(), log256_max_n: template()):
    """out[i] = the greatest of the elements before i; out may be arr."""
    _scan("max", arr, out, scratch, n, dtype)


@func
def _offsets(scratch, count: i32):
    """Counts become the sums of those before; the sum of all."""
    s0 = _first(scratch)
    before = cast(0, u32)
    for k in range(count):
        x = scratch[s0 + k]
        scratch[s0 + k] = before
        before = before + x
    return before


@func(requires_top_level=True)
def select(arr, flags, out, num_out, scratch, n, log256_max_n: template()):
    """The elements whose flag is 1, in order, to the front of out; num_out[0] is how many."""
    f0, s0, c0, o0, a0 = _first(flags), _first(scratch), _first(num_out), _first(out), _first(arr)
    blocks = (n + _BLOCK - 1) // _BLOCK
    for b in range(blocks):
        count = cast(0, u32)
        for i in range(b * _BLOCK, min(n, (b + 1) * _BLOCK)):
            count += cast(flags[f0 + i] != 0, u32)
        scratch[s0 + b] = count
    for _ in range(1):
        num_out[c0] = cast(_offsets(scratch, blocks), num_out.dtype)
    for b in range(blocks):
        at = cast(scratch[s0 + b], i32)
        for i in range(b * _BLOCK, min(n, (b + 1) * _BLOCK)):
            if flags[f0 + i] != 0:
                out[o0 + at] = arr[a0 + i]
                at += 1


@func
def _starts_run(keys, i):
    k0 = _first(keys)
    result = i == 0
    if i > 0:
        result = keys[k0 + i] != keys[k0 + i - 1]
    return result


@func(requires_top_level=True)
def reduce_by_key_add(keys_in, values_in, keys_out, values_out, num_runs, scratch, n, value_dtype: template(),
                      log256_max_n: template()):
    """Each run of equal keys becomes one key and the sum of its values; num_runs[0] is how many."""
    s0, c0 = _first(scratch), _first(num_runs)
    k0, v0, to_k0, to_v0 = _first(keys_in), _first(values_in), _first(keys_out), _first(values_out)
    blocks = (n + _BLOCK - 1) // _BLOCK
    for b in range(blocks):
        count = cast(0, u32)
        for i in range(b * _BLOCK, min(n, (b + 1) * _BLOCK)):
            count += cast(_starts_run(keys_in, i), u32)
        scratch[s0 + b] = count
    for _ in range(1):
        num_runs[c0] = cast(_offsets(scratch, blocks), num_runs.dtype)
    for b in range(blocks):
        at = cast(scratch[s0 + b], i32)
        for i in range(b * _BLOCK, min(n, (b + 1) * _BLOCK)):
            if _starts_run(keys_in, i):
                total = cast(0, value_dtype)
                j = i
                while j < n and keys_in[k0 + j] == keys_in[k0 + i]:
                    total += values_in[v0 + j]
                    j += 1
                keys_out[to_k0 + at] = keys_in[k0 + i]
                values_out[to_v0 + at] = total
                at += 1


# ---- sorting ------------------------------------------------------------------------------------


@func
def _rank(key, dtype: template()):
    """An unsigned number that is in the order of the keys."""
    if static(dtype == u32 or dtype == u64):
        return key
    elif static(dtype == i32):
        return bit_cast(key, u32) ^ u32(0x80000000)
    elif static(dtype == i64):
        return bit_cast(key, u64) ^ (u64(1) << u64(63))
    elif static(dtype == f32):
        bits = bit_cast(key, u32)
        flip = u32(0x80000000)
        if bits >> u32(31) != 0:
            flip = ~u32(0)
        return bits ^ flip
    else:
        static_assert(dtype == f64, "keys are of i32, u32, f32, i64, u64 or f64")
        bits = bit_cast(key, u64)
        flip = u64(1) << u64(63)
        if bits >> u64(63) != 0:
            flip = ~u64(0)
        return bits ^ flip


@func(requires_top_level=True)
def _sort_by_digit(keys, to_keys, values, to_values, scratch, n, dtype: template(), has_values: template(),
                   shift: template()):
    """Stable, by one byte of the keys. At most 64 blocks, each with 256 counters of its own."""
    s0, k0, to_k0 = _first(scratch), _first(keys), _first(to_keys)
    v0, to_v0 = _first(values), _first(to_values)
    size = max(256, (n + 63) // 64)
    blocks = (n + size - 1) // size
    for b in range(blocks):
        for d in range(256):
            scratch[s0 + d * blocks + b] = cast(0, u32)
        for i in range(b * size, min(n, (b + 1) * size)):
            at = cast((_rank(keys[k0 + i], dtype) >> shift) & 255, i32) * blocks + b
            scratch[s0 + at] = scratch[s0 + at] + cast(1, u32)
    for _ in range(1):
        _offsets(scratch, 256 * blocks)
    for b in range(blocks):
        for i in range(b * size, min(n, (b + 1) * size)):
            at = cast((_rank(keys[k0 + i], dtype) >> shift) & 255, i32) * blocks + b
            to = cast(scratch[s0 + at], i32)
            scratch[s0 + at] = scratch[s0 + at] + cast(1, u32)
            to_keys[to_k0 + to] = keys[k0 + i]
            if static(has_values):
                to_values[to_v0 + to] = values[v0 + i]


@func
def _count(n):
    if static(hasattr(n, "shape")):
        return cast(n[()], i32)
    else:
        return cast(n, i32)


@func(requires_top_level=True)
def sort(keys, tmp_keys, values, tmp_values, scratch, n, key_dtype: template(), has_values: template(),
         end_bit: template(), log256_max_n: template()):
    """Sorts the first n keys, values going along if has_values; equal keys keep their order.

    n is a number, or an array without axes that holds it. Only the end_bit lowest bits count (32 or 64 for all).
    Without values pass any array for them.
    """
    k0, tk0, v0, tv0 = _first(keys), _first(tmp_keys), _first(values), _first(tmp_values)
    count = _count(n)
    for p in static(range((end_bit + 7) // 8)):
        if static(p % 2 == 0):
            _sort_by_digit(keys, tmp_keys, values, tmp_values, scratch, count, key_dtype, has_values, 8 * p)
        else:
            _sort_by_digit(tmp_keys, keys, tmp_values, values, scratch, count, key_dtype, has_values, 8 * p)
    if static((end_bit + 7) // 8 % 2 == 1):
        for i in range(count):
            keys[k0 + i] = tmp_keys[tk0 + i]
            if static(has_values):
                values[v0 + i] = tmp_values[tv0 + i]


# ---- from the host ------------------------------------------------------------------------------


@kernel
def _sort_all(keys: template(), tmp_keys: template(), values: template(), tmp_values: template(),
              scratch: template(), has_values: template(), bits: template()):
    sort(keys, tmp_keys, values, tmp_values, scratch, keys.shape[0], keys.dtype, has_values, bits, 4)


def parallel_sort(keys, values=None):
    """Sorts a 1-d array in place, and the values along with it."""
    n = keys.shape[0]
    if n == 0:
        return
    other = keys if values is None else values
    scratch = ndarray(u32, sort_scratch_slots(n))
    temporary = ndarray(keys.dtype, n)
    bits = 64 if keys.dtype in (i64, u64, f64) else 32
    _sort_all(keys, temporary, other, temporary if values is None else ndarray(values.dtype, n), scratch,
              values is not None, bits)


@kernel
def _sum_all(arr: template(), before: template(), scratch: template()):
    exclusive_scan_add(arr, before, scratch, arr.shape[0], i32, 4)
    a0 = _first(arr)
    for i in range(arr.shape[0]):
        arr[a0 + i] += before[i]


class PrefixSumExecutor:
    """Running sums of i32 arrays of one length, in place: `PrefixSumExecutor(n).run(array)`."""

    def __init__(self, length):
        self.length = length
        self._before = ndarray(i32, length)
        self._scratch = ndarray(u32, exclusive_scan_scratch_slots(length))

    def run(self, input_arr):
        """Replaces the elements by their sums from the first one on."""
        if input_arr.dtype is not i32:
            raise RuntimeError("Only qd.i32 type is supported for prefix sum.")
        if input_arr.shape != (self.length,):
            raise RuntimeError(f"this prefix sum is for arrays of {self.length} elements, not {input_arr.shape}")
        _sum_all(input_arr, self._before, self._scratch)
