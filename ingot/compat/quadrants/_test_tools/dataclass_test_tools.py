"""Arguments made up from annotations."""

import dataclasses

from ingot.compat import quadrants as qd

_EXTENT = 10


def _made(annotation):
    if isinstance(annotation, qd.types.NDArray):
        return qd.ndarray(annotation.dtype, (_EXTENT,) * annotation.ndim)
    if dataclasses.is_dataclass(annotation):
        return build_struct(annotation)
    if annotation is qd.Template or isinstance(annotation, qd.Template):
        return qd.field(qd.i32, (_EXTENT,))
    raise TypeError(f"no argument is known for {annotation!r}")


def build_struct(struct_type):
    """An instance of a dataclass, each member made from its annotation."""
    return struct_type(**{f.name: _made(f.type) for f in dataclasses.fields(struct_type)})


def build_obj_tuple_from_type_dict(name_to_type):
    """One argument for each annotation."""
    return tuple(_made(annotation) for annotation in name_to_type.values())
