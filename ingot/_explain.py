"""`qd.explain`: why a kernel was compiled, or where two values differ for the fingerprint."""

from ingot import _core

_NOTHING = object()


def explain(a, b=_NOTHING, **options):
    """explain(kernel): why each of its last compiles was needed, the newest first, such as
    `self.cfg.n: 100 -> 200` or `source of helper() in util.py changed`.

    explain(a, b): the first paths at which the fingerprints of two values differ; the options
    are those of `ingot.fingerprint.explain`.
    """
    if b is not _NOTHING:
        from ingot.fingerprint import explain as compare

        return compare(a, b, **options)
    if options:
        raise TypeError("explain(kernel) takes no options; two values were expected")
    return [why for _, _, _, why in reversed(_core._explain(a))]
