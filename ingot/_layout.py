"""`qd.Layout`, in a file of its own: fields are made without the `enum` module, which takes longer to load
than they do."""

from enum import IntEnum


class Layout(IntEnum):
    """How the scalars of vectors, matrices and structs lie in a field.

    AOS  together: one element after the other
    SOA  apart: one array for each scalar, or for each member of a struct
    """

    AOS = 1
    SOA = 2
