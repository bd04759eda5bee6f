"""The reference's classes of fields and trees, for `isinstance`; `dir()` lists what it documents."""

import ingot
from ingot import _core, _fields, _snode

_FIELD = (
    "copy_from dtype fill from_numpy from_torch has_dual has_grad layout parent shape snode to_dlpack "
    "to_numpy to_torch"
).split()
_NODE = "bitmasked deactivate_all dense dynamic lazy_dual lazy_grad place pointer quant_array".split()


class _Kind(type):
    """A name for a class of Ingot: the same instances, another list of names."""

    def __instancecheck__(cls, instance):
        return isinstance(instance, cls._is)

    def __dir__(cls):
        return list(cls._public)

    def __call__(cls, *args, **options):
        return cls._is(*args, **options)

    def __getattr__(cls, name):
        return getattr(cls._is, name)


class Field(metaclass=_Kind):
    """Any field."""

    _is, _public = ingot.Field, _FIELD


class ScalarField(metaclass=_Kind):
    """A field of numbers."""

    _is, _public = ingot.ScalarField, _FIELD


class MatrixField(metaclass=_Kind):
    """A field of vectors or matrices."""

    _is, _public = ingot.MatrixField, [*_FIELD, "get_scalar_field"]


class StructField(metaclass=_Kind):
    """A field of structs."""

    _is, _public = _fields.StructField, [*_FIELD, "get_member_field", "keys"]


class SNode(metaclass=_Kind):
    """A node of a tree of fields."""

    _is, _public = _snode.SNode, [*_NODE, "parent", "shape"]


class FieldsBuilder(metaclass=_Kind):
    """A tree of fields of its own."""

    _is, _public = _snode.FieldsBuilder, [*_NODE, "finalize"]


class _Ptr:
    """`snode.ptr`: what the reference's C++ object tells of the field at a place."""

    __slots__ = ("_node",)

    def __init__(self, node):
        self._node = node

    def get_snode_grad_type(self):
        from ingot.compat.quadrants.types.enums import SNodeGradType

        field = self._node._field()
        for which, kind in (("grad", SNodeGradType.ADJOINT), ("dual", SNodeGradType.DUAL)):
            if any(one is field for one in _fields._all_companions(which)):
                return kind
        return SNodeGradType.PRIMAL

    def is_primal(self):
        return self.get_snode_grad_type().name == "PRIMAL"

    def has_adjoint(self):
        return self._node._field().has_grad()

    def has_dual(self):
        return self._node._field().has_dual()

    def has_adjoint_checkbit(self):
        return ingot.cfg.debug and self.has_adjoint()


_snode.SNode.ptr = property(_Ptr)


def _size(field):
    """Under arch=qd.python a field of the reference is a torch tensor, which has a size."""
    import torch

    return torch.Size(field.shape + field.element_shape)


_core.DenseField.size = _size
