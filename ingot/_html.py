"""What notebooks show: arrays and fields as tables, explanations as lists. Called by `_repr_html_` methods."""

from html import escape

MOST = 6  # rows and columns at each end


def _cut(n):
    """Indices that are shown, and None where some are left out."""
    return [*range(n)] if n <= 2 * MOST else [*range(MOST), None, *range(n - MOST, n)]


def _text(value):
    return "".join(escape(str(value)).split("\n"))


def table(rows, head=None):
    """Rows of texts as a table; the first column is a heading."""
    lines = ["<table>"]
    if head:
        lines.append("<tr>" + "".join(f"<th>{_text(x)}</th>" for x in head) + "</tr>")
    for first, *rest in rows:
        lines.append(f"<tr><th>{_text(first)}</th>" + "".join(f"<td>{_text(x)}</td>" for x in rest) + "</tr>")
    return "\n".join([*lines, "</table>"])


def _numbers(values):
    """An array of one or two axes as a table with its corners."""
    import numpy as np

    def shown(x):
        return f"{x:.6g}" if isinstance(x, (float, np.floating)) else str(x)

    if values.ndim == 1:
        at = _cut(len(values))
        names = ["" if i is None else i for i in at]
        return table([["", *("…" if i is None else shown(values[i]) for i in at)]], ["", *names])
    rows, columns = _cut(values.shape[0]), _cut(values.shape[1])
    body = []
    for r in rows:
        cells = ["…" if r is None or c is None else shown(values[r, c]) for c in columns]
        body.append(["…" if r is None else r, *cells])
    return table(body, ["", *("…" if c is None else c for c in columns)])


def _repr_html_(array):
    """An ndarray or field: what it is, and its elements; of more than two axes the first plane."""
    kind = type(array).__name__.replace("Ndarray", "ndarray")
    about = f"<b>qd.{escape(kind)}</b> {_text(array.element_type)} {_text(tuple(array.shape))}"
    try:
        values = array.to_numpy()
    except Exception as error:  # not placed yet, destroyed
        return f"{about}<br><i>{_text(error)}</i>"
    note = ""
    if not values.size:
        return f"{about}<br><i>empty</i>"
    if values.ndim == 0:
        return f"{about}<br>{_text(values[()])}"
    if values.ndim > 2:
        extra = values.ndim - 2
        note = f"<br><i>[{'0, ' * extra}:, :]</i>"
        values = values[(0,) * extra]
    return f"{about}{note}\n{_numbers(values)}"


class Lines(list):
    """A list of texts that a notebook shows as one."""

    def _repr_html_(self):
        return "<ol>" + "".join(f"<li>{_text(x)}</li>" for x in self) + "</ol>" if self else "<i>nothing</i>"


class Profile(list):
    """What `qd.profiler.task_profiles()` gives; a notebook shows it as a table."""

    def _repr_html_(self):
        rows = [[r.kernel if r.task is None else f"task {r.task} {r.place}", r.count, f"{1e3 * r.total:.3f}",
                 f"{1e3 * r.min:.3f}", f"{1e3 * r.total / r.count:.3f}", f"{1e3 * r.max:.3f}", r.threads,
                 "" if r.share is None else f"{r.bytes / r.total * 1e-9:.2f}"] for r in self]
        return table(rows, ["kernel", "runs", "total ms", "min", "mean", "max", "threads", "GB/s"])
