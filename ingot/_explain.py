"""`qd.explain`: why a kernel was compiled, or where two values differ for the fingerprint."""

from ingot import _core

_NOTHING = object()


def explain(a, b=_NOTHING, **options):
    """explain(kernel): why each of its last compiles was needed, the newest first, such as
    `self.cfg.n: 100 -> 200` or `source of helper() in util.py changed`.

    explain(kernel, launch=True): the calls that its last launch made to find out whether
    anything has changed, such as `terms(self) is called: ...`.

    explain(a, b): the first paths at which the fingerprints of two values differ; the options
    are those of `ingot.fingerprint.explain`.
    """
    if b is not _NOTHING:
        from ingot.fingerprint import explain as compare

        return compare(a, b, **options)
    launch = options.pop("launch", False)
    if options:
        raise TypeError("explain(kernel) takes no option but launch=; two values were expected")
    if launch:
        return _core._explain_launch(a)
    return [why for _, _, _, why in reversed(_core._explain(a))]
