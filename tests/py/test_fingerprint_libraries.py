"""Values of other libraries count by content: what they keep lazily, how the content is cut into
blocks or chunks and what lies under masks does not (ingot/_reducers.py)."""

import pytest
from conftest import needs
from fingerprint_checks import distinct, fp, same

# ---- pandas ------------------------------------------------------------------------------------------


@needs("pandas")
def test_frames():
    import pandas as pd

    frame = pd.DataFrame({"a": [1, 2, 3], "b": ["x", "y", None], "c": [1.5, None, 2]}, index=["p", "q", "r"])
    asked = frame.copy()
    asked.index.get_loc("q"), asked.loc["p"], asked.columns.is_unique, asked["a"], asked.memory_usage()
    pieces = pd.DataFrame(index=["p", "q", "r"])
    for name in "abc":
        pieces[name] = frame[name]
    same(frame, asked, pieces, frame[["a", "b", "c"]], pd.concat([frame.iloc[:1], frame.iloc[1:]]))
    noted = frame.copy()
    noted.attrs["unit"] = "m"
    single = frame.set_flags(allows_duplicate_labels=False)
    same(frame, frame.set_flags(allows_duplicate_labels=True))
    distinct(frame["a"], single["a"].set_flags(allows_duplicate_labels=False))
    distinct(frame, noted, single, frame.rename(columns={"a": "z"}), frame.astype({"a": "int32"}), frame.iloc[:2],
             frame.assign(a=[1, 2, 4]), frame.reset_index(drop=True), frame[["b", "a", "c"]], frame["a"],
             frame["a"].rename("q"), frame.index, frame.rename_axis("k"))


@needs("pandas")
def test_arrays_of_pandas():
    import pandas as pd

    made = [pd.Series([1, 2, 2]).astype(t) for t in
            ("category", "string", "Int64", "Float64", "datetime64[ns]", "datetime64[ns, UTC]", "timedelta64[ns]")]
    made += [pd.Series([True, False, True], dtype="boolean"),
             pd.Series(pd.period_range("2020-01", periods=3, freq="M"))]
    for series in made:
        other = series.copy()
        other.iloc[0] = series.iloc[1]
        same(series, series.copy(), pd.concat([series.iloc[:1], series.iloc[1:]]))
        distinct(series, other)
    one, two = pd.array([1, None, 3], dtype="Int64"), pd.array([1, 2, 3], dtype="Int64")
    two[1] = None  # 2 is still there, under the mask
    same(one, two)
    distinct(pd.Categorical(["a"], ["a", "b"]), pd.Categorical(["a"], ["b", "a"]),
             pd.Categorical(["a"], ["a", "b"], ordered=True))
    sparse = pd.arrays.SparseArray([0, 0, 1])
    same(sparse, sparse.copy())
    distinct(sparse, pd.arrays.SparseArray([0, 1, 0]), pd.arrays.SparseArray([0, 0, 1], fill_value=1))


@needs("pandas")
def test_indexes():
    import pandas as pd

    levels = pd.MultiIndex.from_product([[1, 2], ["a", "b"]], names=["n", "l"])
    same(levels, pd.MultiIndex.from_tuples(list(levels), names=["n", "l"]))
    distinct(levels, levels[:3], levels.rename(["n", "k"]), pd.RangeIndex(3), pd.RangeIndex(4),
             pd.RangeIndex(3, name="x"), pd.date_range("2020", periods=3), pd.date_range("2020", periods=3, tz="UTC"),
             pd.interval_range(0, 3), pd.interval_range(0, 3, closed="left"))
    same(pd.Timestamp("2020", tz="UTC"), pd.Timestamp("2020", tz="UTC"))
    same([pd.NA, pd.NaT], [pd.NA, pd.NaT])


# ---- xarray -----------------------------------------------------------------------------------------------


@needs("xarray")
def test_xarray():
    import numpy as np
    import xarray as xr

    a = xr.DataArray(np.arange(6.0).reshape(2, 3), dims=("a", "b"), coords={"a": [1, 2]}, name="n", attrs={"u": "m"})
    asked = a.copy()
    asked.sel(a=1), asked.indexes, asked.sizes
    same(a, asked, a.transpose().transpose())
    distinct(a, a + 1, a.rename("k"), a.assign_attrs(u="k"), a.assign_coords(a=[1, 3]), a.transpose(),
             a.to_dataset(), a.to_dataset().assign_attrs(k=1), a.variable, a.to_dataset().assign(n=a + 1))
    same(a.to_dataset(), asked.to_dataset())


# ---- scipy.sparse -------------------------------------------------------------------------------------------


@needs("scipy")
@pytest.mark.parametrize("form", ["csr", "csc", "coo", "lil", "dok", "dia", "bsr"])
def test_sparse(form):
    import numpy as np
    import scipy.sparse as sp

    m = sp.random(50, 40, 0.1, format="csr", random_state=1)
    other = m.copy()
    other.data[0] += 1
    asked = m.asformat(form).copy()
    asked.sum(), asked @ np.ones(40), asked.nnz
    if form in ("csr", "csc", "bsr"):
        assert asked.has_sorted_indices and asked.has_canonical_format
    same(m.asformat(form), asked)
    distinct(m.asformat(form), other.asformat(form))


@needs("scipy")
def test_sparse_by_content():
    import numpy as np
    import scipy.sparse as sp

    unsorted = sp.csr_matrix((np.array([1.0, 2.0]), np.array([1, 0]), np.array([0, 2])), shape=(1, 2))
    ordered = unsorted.copy()
    ordered.sort_indices()
    same(unsorted, ordered)
    doubled = sp.coo_matrix((np.array([1.0, 1.0]), (np.array([0, 0]), np.array([1, 1]))), shape=(2, 2))
    same(doubled, sp.coo_matrix((np.array([2.0]), (np.array([0]), np.array([1]))), shape=(2, 2)))
    distinct(ordered, sp.csr_array(ordered), sp.csr_matrix(ordered.shape), ordered.astype("f4"))


# ---- torch --------------------------------------------------------------------------------------------------


@needs("torch")
def test_tensors():
    import torch

    t = torch.arange(12.0).reshape(3, 4)
    same(t, t.clone(), t.T.contiguous().T, torch.cat([t, t])[:3])
    distinct(t, t.T, t + 1, t.double(), t.clone().requires_grad_(), torch.nn.Parameter(t), t[:2], t.numpy())
    half = t.to(torch.bfloat16)
    same(half, half.clone())
    distinct(half, half + 1)
    c = torch.complex(t, t)
    same(c.conj(), c.conj().clone(), c.conj().resolve_conj())
    coo = torch.tensor([[0, 1.0], [2.0, 0]]).to_sparse()
    same(coo, coo.clone(), coo.coalesce())
    distinct(coo, coo.to_dense(), coo.to_sparse_csr(), coo + coo)
    used = t.clone().requires_grad_()
    used.sum().backward()
    same(used, t.clone().requires_grad_())  # a gradient is no part of the value
    same(torch.float32, torch.float32)
    distinct(torch.float32, torch.float64, torch.Size([1]), (1,))
    torch.manual_seed(1)
    one = torch.nn.Linear(2, 2)
    torch.manual_seed(1)
    two = torch.nn.Linear(2, 2)
    same(one, two)


# ---- Arrow --------------------------------------------------------------------------------------------------


def table(pa):
    return pa.table({
        "a": [1, 2, None], "s": ["x", "yy", None], "l": [[1], [], None], "st": [{"q": 1}, None, {"q": 3}],
        "d": pa.array(["a", "b", "a"]).dictionary_encode(), "bo": [True, None, False], "f": [1.5, None, 2.5],
        "dec": pa.array([1, 2, 3], pa.decimal128(5, 2)), "ts": pa.array([1, None, 3], pa.timestamp("us", "UTC")),
        "fs": pa.array([b"ab", b"cd", None], pa.binary(2)), "dur": pa.array([1, None, 2], pa.duration("s")),
        "n": pa.nulls(3), "ls": pa.array(["a", None, "bc"], pa.large_string()), "bin": [b"a", b"", None],
    })


@needs("pyarrow")
def test_arrow():
    import pyarrow as pa

    t = table(pa)
    cut = pa.concat_tables([t.slice(0, 1), t.slice(1)])
    big = pa.concat_tables([t, t])
    same(t, cut, big.slice(3))
    for name in t.column_names:
        same(t[name], cut[name], big[name].slice(3))
        distinct(t[name], big[name])
    distinct(t, big, t.slice(0, 2), t.rename_columns(["z", *t.column_names[1:]]), t.to_batches()[0], t.schema,
             t.replace_schema_metadata({"k": "v"}), t.set_column(0, "a", pa.array([1, 2, 3])))
    same(t.to_batches()[0], table(pa).to_batches()[0])
    for kind in (pa.date32(), pa.time64("us"), pa.duration("s"), pa.decimal128(5, 2), pa.float16(), pa.bool_(),
                 pa.month_day_nano_interval()):
        none = pa.array([None, None], kind)
        same(none, pa.array([None, None, None], kind)[1:])
        distinct(none, pa.array([None], kind))
    distinct(pa.array(["a", "bc"]), pa.array(["ab", "c"]), pa.array(["a", None, "bc"]), pa.array([b"a", b"bc"]))
    same(pa.array([], pa.string()), pa.array(["a"])[:0])
    same(pa.scalar(3), pa.scalar(3))
    distinct(pa.scalar(3), pa.scalar(3, pa.int8()), pa.int32(), pa.int64(), pa.field("a", pa.int8()), 3)


# ---- as what code works on --------------------------------------------------------------------------------------


@needs("pandas")
def test_classes_of_the_same_name():
    class DataFrame:
        def __init__(self):
            self.x = 1

    DataFrame.__module__ = "pandas"
    assert fp(DataFrame())  # by its attributes: it is not theirs


# ---- attributes of their own ------------------------------------------------------------------------


def check_own(make, name="mark"):
    """Attributes that a program puts on such a value count; those that the library keeps do not."""
    one, two, again, plain = make(), make(), make(), make()
    same(one, two)
    for value, mark in ((one, 1), (two, 2), (again, 1)):
        setattr(value, name, mark)
    same(one, again)
    distinct(one, two, plain)


@needs("pandas")
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_attributes_of_frames():
    import pandas as pd

    class Frame(pd.DataFrame):
        _metadata = ["mark"]

    check_own(lambda: Frame({"a": [1, 2]}))
    check_own(lambda: pd.DataFrame({"a": [1, 2]}))
    check_own(lambda: pd.Series([1, 2]))


@needs("scipy")
def test_attributes_of_matrices():
    import scipy.sparse as sp

    for form in ("csr", "csc", "coo", "lil", "dok", "dia", "bsr"):
        check_own(lambda form=form: sp.eye(4, format=form))


@needs("xarray")
def test_attributes_of_datasets():
    import xarray as xr

    class Set(xr.Dataset):
        __slots__ = ("mark",)

    class Array(xr.DataArray):
        __slots__ = ("mark",)

    check_own(lambda: Set({"a": ("x", [1, 2])}))
    check_own(lambda: Array([1, 2]))


def halve(x):
    return x / 2


@needs("numpy")
def test_attributes_of_vectorize():
    import numpy as np

    check_own(lambda: np.vectorize(halve))


def test_methods_and_structs_as_values():
    import struct

    def mark(value):
        value.k = 1
        return value

    same(staticmethod(halve), staticmethod(halve))
    distinct(staticmethod(halve), classmethod(halve), staticmethod(check_own), halve, mark(staticmethod(halve)))
    same(struct.Struct("3i"), struct.Struct("3i"))
    distinct(struct.Struct("3i"), struct.Struct("4i"), "3i")


# ---- NumPy and SciPy ---------------------------------------------------------------------------------------


@needs("numpy")
def test_masked_arrays():
    import numpy as np

    m = np.ma.array([[1, 2], [3, 4]], mask=[[0, 1], [0, 0]])
    asked, hard, filled, noted = m.copy(), m.copy(), m.copy(), m.copy()
    asked.fill_value  # noqa: B018  it is made when it is asked for
    hard.harden_mask()
    filled.fill_value = 7
    noted.unit = "m"
    same(m, asked, np.ma.array(np.asfortranarray(m.data), mask=np.asfortranarray(m.mask)))
    distinct(m, hard, filled, noted, m.data, np.ma.array(m.data), np.ma.array(m.data, mask=[[0, 0], [0, 1]]),
             np.ma.array(m.data * 1.0, mask=m.mask))
    record = np.ma.array([(1, 2.0)], mask=[(0, 1)], dtype=[("a", "i4"), ("b", "f8")])
    same(record, record.copy())
    distinct(record, np.ma.array(record.data, mask=[(1, 0)]))


@needs("numpy")
def test_random_states():
    import numpy as np

    own = np.random.RandomState(5)
    same(own, np.random.RandomState(5))
    distinct(own, np.random.RandomState(6), np.random.mtrand._rand)
    before = fp(np.random.mtrand._rand), fp([np.random.rand])
    np.random.rand()
    assert (fp(np.random.mtrand._rand), fp([np.random.rand])) == before
    drawn = np.random.RandomState(5)
    drawn.rand()
    distinct(own, drawn)


def test_methods_that_a_module_hands_out():
    """They count as `random.random` does; those of a generator of one's own with its state."""
    import random

    before = fp([random.random, random.shuffle])
    random.random()
    assert fp([random.random, random.shuffle]) == before
    own, other = random.Random(1), random.Random(2)
    distinct([own.random], [other.random], [random.random])


@needs("scipy")
def test_ufuncs_and_splines_of_scipy():
    from scipy import special
    from scipy.interpolate import UnivariateSpline

    distinct([special.gamma], [special.erf])
    points = [0.0, 1.0, 2.0, 3.0, 4.0]
    one, two = UnivariateSpline(points, points, s=0), UnivariateSpline(points, points, s=0)
    same(one, two)
    distinct(one, UnivariateSpline(points, points[::-1], s=0), UnivariateSpline(points, points, s=0, ext=1))


@needs("torch")
def test_functions_of_torch():
    import torch

    distinct([torch.sin], [torch.cos], [torch.relu], [torch.nn.functional.relu])


def test_what_functions_of_c_were_told():
    import ctypes

    one, asked, told = ctypes.CDLL(None), ctypes.CDLL(None), ctypes.CDLL(None)
    asked.labs  # noqa: B018
    told.labs.argtypes = [ctypes.POINTER(ctypes.c_double)]
    other = ctypes.CDLL(None)
    other.labs.argtypes = [ctypes.POINTER(ctypes.c_float)]
    same(one, asked)
    distinct(one, told, other)
