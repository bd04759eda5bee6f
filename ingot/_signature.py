"""What `help` and `inspect.signature` say of dtypes, errors and the class of kernels, which are made in C.

Loaded with the package, so it imports nothing; `inspect` comes when it asks.
"""


class Signature:
    """The `__signature__` of a class, and of its instances where `of_instance` is given."""

    __slots__ = ("_of_class", "_of_instance")

    def __init__(self, of_class, of_instance=None):
        self._of_class = of_class
        self._of_instance = of_instance

    def __get__(self, obj, cls=None):
        # A class below with an __init__ of its own has that one's signature.
        like = self._of_instance if obj is not None else None if hasattr(cls.__init__, "__code__") else self._of_class
        if like is None:
            raise AttributeError("__signature__")
        import inspect

        return inspect.signature(like)


class Words:
    """The `__doc__` of a class whose instances have that of the function that they wrap."""

    __slots__ = ("_text",)

    def __init__(self, text):
        self._text = text

    def __get__(self, obj, cls=None):
        return self._text if obj is None else obj.__wrapped__.__doc__

    def __set__(self, obj, value):
        obj.__wrapped__.__doc__ = value

    def __delete__(self, obj):
        obj.__wrapped__.__doc__ = None


def give(put, dtype, kernel, errors):
    """Called once, by the package; `put` is the function of the extension that can."""
    put(dtype, "__signature__", Signature(lambda x: None, lambda x: None))
    put(kernel, "__signature__", Signature(lambda function: None))
    words = "What @qd.kernel makes of a function: calls run it as native code. Attributes and docstring are the function's."
    put(kernel, "__doc__", Words(words))
    for error in errors:
        put(error, "__signature__", Signature(lambda *args: None))
