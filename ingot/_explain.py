"""`qd.explain`: why a kernel was compiled, or where two values differ for the fingerprint."""

from ingot import _core

_NOTHING = object()


def explain(a, b=_NOTHING, **options):
    """explain(kernel): why each of its last compiles was needed, the newest first, such as
    `self.cfg.n: 100 -> 200` or `source of helper() in util.py changed`.

    explain(kernel, launch=True): the calls that its last launch made to find out whether
    anything has changed, such as `terms(self) is called: ...`.

    explain(kernel, code=True): what the compiler made of its loops and updates when it was compiled
    last, such as `heat.py:12: runs in parallel`; empty if that was before a cache had it.

    explain(a, b): the first paths at which the fingerprints of two values differ; the options
    are those of `ingot.fingerprint.explain`.
    """
    if b is not _NOTHING:
        from ingot.fingerprint import explain as compare

        return compare(a, b, **options)
    launch, code = options.pop("launch", False), options.pop("code", False)
    if options:
        raise TypeError("explain(kernel) takes no option but launch= and code=; two values were expected")
    from ingot._html import Lines

    if launch:
        return Lines(_core._explain_launch(a))
    if code:
        lines = [row[4] for row in _core._explain(a) if row[4]]
        return Lines(lines[-1].split("\n") if lines else [])
    return Lines(row[3] for row in reversed(_core._explain(a)))
