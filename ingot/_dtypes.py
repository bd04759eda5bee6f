"""NumPy's dtypes as plain data: records, arrays in records, void, long doubles. Called by
src/py/value/codec_numpy.c for those that are not said by a short text alone.

    text                                       as dtype.str, of a fixed alphabet
    ("wide", text, bits)                       a long double, by the bits of its mantissa
    ("array", dtype, shape)                    in a record
    ("record", size, aligned, fields)          fields: (name, title or None, offset, dtype)

`rebuild` gets data that anybody may have written: it takes these forms only, none of which
can mean a Python object.
"""

import math
import re

import numpy as np

_TEXT = re.compile(r"[<>|](?:[biufcSUV][0-9]{1,9}|[mM]8(?:\[[0-9]{0,9}(?:[YMWDhms]|ms|us|ns|ps|fs|as)\])?)")
_DEPTH = 16
_LARGEST = 1 << 31  # of one element, as NumPy has it


class _Odd(ValueError):
    pass


def describe(dtype):
    """The data, or None: something of the dtype would be lost."""
    try:
        data = _describe(dtype, 0)
        again = rebuild(data)
    except (_Odd, TypeError):
        return None
    return data if again == dtype and again.isalignedstruct == dtype.isalignedstruct else None


def _describe(dtype, depth):
    if depth > _DEPTH or dtype.metadata is not None or dtype.num >= 256:
        raise _Odd("a dtype of somebody else's, with metadata, or nested too deep")
    if dtype.subdtype is not None:
        return "array", _describe(dtype.subdtype[0], depth + 1), dtype.subdtype[1]
    if dtype.names is not None:
        if dtype.type is not np.void:
            raise _Odd("a record with a class")
        fields = [_field(name, dtype.fields[name], depth) for name in dtype.names]
        return "record", dtype.itemsize, bool(dtype.isalignedstruct), tuple(fields)
    if not _TEXT.fullmatch(dtype.str):
        raise _Odd(dtype.str)
    return ("wide", dtype.str, _mantissa(dtype)) if _is_wide(dtype) else dtype.str


def _field(name, field, depth):
    title = field[2] if len(field) > 2 else None
    if title is not None and type(title) is not str:
        raise _Odd("a title that is no text")
    return name, title, field[1], _describe(field[0], depth + 1)


def _is_wide(dtype):
    return dtype.kind in "fc" and dtype.itemsize > (8 if dtype.kind == "f" else 16)


def _mantissa(dtype):
    return int(np.finfo(dtype.newbyteorder("=")).nmant)


def rebuild(data, depth=0):
    if depth > _DEPTH:
        raise _Odd("a dtype that is nested too deep")
    match data:
        case str() if _TEXT.fullmatch(data):
            return _of_text(data, False)
        case ("wide", str(text), int(bits)) if _TEXT.fullmatch(text):
            dtype = _of_text(text, True)
            if _mantissa(dtype) != bits:
                raise _Odd("a long double of another machine")
            return dtype
        case ("array", base, tuple(shape)) if all(type(n) is int and n >= 0 for n in shape):
            base = rebuild(base, depth + 1)
            if len(shape) > 32 or base.itemsize * math.prod(shape) >= _LARGEST:
                raise _Odd("an element that is too large")
            return np.dtype((base, shape))
        case ("record", int(size), bool(aligned), tuple(fields)):
            return _record(size, aligned, [_checked(f) for f in fields], depth + 1)
    raise _Odd("not a dtype")


def _of_text(text, wide):
    dtype = np.dtype(text)
    if dtype.hasobject or _is_wide(dtype) is not wide:
        raise _Odd("not a dtype")
    return dtype


def _checked(field):
    match field:
        case (str(name), None | str() as title, int(offset), dtype) if offset >= 0:
            return name, title, offset, dtype
    raise _Odd("not a field")


def _record(size, aligned, fields, depth):
    if not 0 <= size < _LARGEST:
        raise _Odd("an element that is too large")
    parts = {
        "names": [name for name, _, _, _ in fields],
        "formats": [rebuild(dtype, depth) for _, _, _, dtype in fields],
        "offsets": [offset for _, _, offset, _ in fields],
        "itemsize": size,
    }
    if any(title is not None for _, title, _, _ in fields):
        parts["titles"] = [title for _, title, _, _ in fields]
    return np.dtype(parts, align=aligned)
