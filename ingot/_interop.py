"""NumPy and torch conversions of arrays; the methods of the array type end here.

Loaded by the first conversion, so that neither library is needed or imported before. A view
shares memory through the buffer protocol or DLPack, which keeps the array alive.
"""


def _view(array):
    import numpy as np

    return np.asarray(memoryview(array))


def _look(array):
    """The elements to be read here and now: unlike a view, it does not count as a writer (R25)."""
    import numpy as np

    look = getattr(array._on_host(), "_look", None)
    return np.asarray(look()) if look else _view(array)


def _on_host(array, copy, what):
    """The array, or a copy of it that this processor can address; and whether it is one."""
    host = array._on_host()
    if host is not array and copy is False:
        raise ValueError(f"copy=False cannot be had: {what} would need the memory of a device")
    return host, host is not array


def _put_back(array, host):
    if host is not array:
        array.copy_from(host)


def to_numpy(array, dtype=None, *, copy=True):
    """The elements as a NumPy array: a copy, a view (copy=False), or what is cheaper (None)."""
    array, copied = _on_host(array, copy, "a view")
    copy = copy and not (copied and array.layout is None)
    view = _look(array) if copy else _view(array)
    if dtype is not None and view.dtype != dtype:
        if copy is False and not copied:
            raise ValueError(f"copy=False cannot convert {view.dtype} to {dtype}")
        return view.astype(dtype, order="C")
    return view.copy(order="C") if copy else view


def as_array_for_numpy(array, dtype=None, copy=None):
    """`__array__`, as NumPy 1 and 2 call it."""
    return to_numpy(array, dtype, copy=copy)


MASKED = (
    "a masked array would lose its mask; pass arr.filled(value), or arr.data, and "
    "np.ma.getmaskarray(arr) beside it where the mask matters"
)


def from_numpy(array, source):
    """Loads all elements from a NumPy array of equal shape, converting its numbers."""
    import numpy as np

    if not isinstance(source, np.ndarray):
        raise TypeError(f"from_numpy: expected a numpy.ndarray, got '{type(source).__name__}'; "
                        "make one of it: numpy.array(x)")
    if isinstance(source, np.ma.MaskedArray):
        raise TypeError(f"from_numpy: {MASKED}")
    source = np.asarray(source)
    if source.dtype.kind not in "biuf":
        raise TypeError(f"from_numpy: elements of dtype {source.dtype} are no real numbers")
    if source.shape != array.shape + array.element_shape:
        raise ValueError(
            f"from_numpy: expected shape {array.shape + array.element_shape}, got {source.shape}")
    host = array._on_host()
    np.copyto(_view(host), source, casting="unsafe")
    _put_back(array, host)


def to_torch(array, device=None, *, copy=True):
    """The elements as a torch tensor: a copy, shared memory (copy=False), or either (None)."""
    import torch

    array, copied = _on_host(array, copy, "a tensor that shares memory")
    copy = copy and not (copied and array.layout is None)
    tensor = torch.from_dlpack(array)
    if device is not None and torch.device(device).type != "cpu":
        if copy is False and not copied:
            raise ValueError(f"copy=False cannot move an array to device '{device}'")
        return tensor.to(device, memory_format=torch.contiguous_format)
    return tensor.clone(memory_format=torch.contiguous_format) if copy else tensor


def from_torch(array, source):
    """Loads all elements from a torch tensor of equal shape, converting its numbers."""
    import torch

    if not isinstance(source, torch.Tensor):
        raise TypeError(f"from_torch: expected a torch.Tensor, got '{type(source).__name__}'")
    if source.is_complex():
        raise TypeError(f"from_torch: elements of dtype {source.dtype} are no real numbers")
    if tuple(source.shape) != array.shape + array.element_shape:
        raise ValueError(
            f"from_torch: expected shape {array.shape + array.element_shape}, got {tuple(source.shape)}")
    host = array._on_host()
    torch.from_dlpack(host).copy_(source.detach())
    _put_back(array, host)


def tolist(array):
    """The elements as nested lists of Python's numbers."""
    return _look(array).tolist()


def set_part(array, key, value):
    """`array[2:5] = value`: a number must fit; arrays broadcast and are converted as NumPy does."""
    import numpy as np

    if isinstance(value, np.ma.MaskedArray):
        raise TypeError(f"a slice of an ndarray: {MASKED}")
    if hasattr(value, "_ingot_passing"):  # a view of an array
        value = _look(value.arr)[value.offset : value.offset + value.size]
    if np.ndim(value) == 0:
        value = array.dtype._entry(value, "a slice of an ndarray", False)
    host = array._on_host()
    _view(host)[key] = value
    _put_back(array, host)


def array_interface(array):
    """The older protocol of NumPy, which Pillow and others read. Read-only: nobody says when a
    writer is done."""
    if array._on_host() is not array:
        raise AttributeError("the memory of a device has no __array_interface__")
    interface = dict(_look(array).__array_interface__)
    interface["data"] = (interface["data"][0], True)
    return interface


SHOWN = 40  # elements, beyond which the middle is left out


def shown(array):
    """What `repr` says: type, shape, and the values as NumPy writes them."""
    layout = f" layout={array.layout!r}" if array.layout is not None else ""
    head = f"qd.ndarray {array.element_type} {array.shape!r}{layout}"
    try:
        import numpy as np

        text = np.array2string(_look(array), threshold=SHOWN, separator=", ")
    except (ImportError, BufferError):  # no NumPy; memory that the host cannot read
        return f"<{head}>"
    return f"<{head}\n{text}>" if "\n" in text else f"<{head} {text}>"


def gradient(tensor):
    """The gradient of a torch tensor that requires one; zeros are put there if it has none."""
    import warnings

    import torch

    with warnings.catch_warnings():
        # torch warns about reading it from a tensor that is no leaf, which is what is wanted.
        warnings.simplefilter("ignore", UserWarning)
        if tensor.grad is None:
            tensor.grad = torch.zeros_like(tensor, memory_format=torch.contiguous_format)
        return tensor.grad
