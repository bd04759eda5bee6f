"""What the tests of fingerprints assert, in their words."""

import ingot
import pytest
from ingot import FingerprintError

fp = ingot.fingerprint


def lenient(obj):
    return fp(obj, variant="lenient")


def distinct(*values):
    digests = [fp(v) for v in values]
    assert len(set(digests)) == len(digests), list(zip(values, digests))


def same(*values):
    assert len({fp(v) for v in values}) == 1, values


def refused(obj, *parts, variant="strict"):
    with pytest.raises(FingerprintError) as caught:
        fp(obj, variant=variant)
    assert isinstance(caught.value, TypeError)
    for part in parts:
        assert part in str(caught.value)
    return caught.value
