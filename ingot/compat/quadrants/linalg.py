"""Linear solvers."""

from ingot.compat.missing import adopt as _adopt
from ingot.compat.missing import provided as _provided

_adopt(
    globals(),
    "linalg",
    "LinearOperator MatrixFreeBICGSTAB MatrixFreeCG SparseCG SparseMatrix "
    "SparseMatrixBuilder SparseSolver",
)


def __dir__():
    return _provided(globals())
