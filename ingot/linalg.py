"""`qd.linalg`: sparse matrices and solvers.

    builder = qd.linalg.SparseMatrixBuilder(n, n, max_num_triplets=1000)

    @qd.kernel
    def fill(A: qd.types.sparse_matrix_builder()):
        for i in range(n):
            A[i, i] += 2.0

    fill(builder)
    A = builder.build()
"""

from ingot._sparse import (
    LinearOperator,
    MatrixFreeBICGSTAB,
    MatrixFreeCG,
    SparseCG,
    SparseMatrix,
    SparseMatrixBuilder,
    SparseSolver,
)

__all__ = [
    "LinearOperator", "MatrixFreeBICGSTAB", "MatrixFreeCG", "SparseCG", "SparseMatrix",
    "SparseMatrixBuilder", "SparseSolver",
]
