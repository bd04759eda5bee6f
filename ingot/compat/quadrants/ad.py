"""Differentiation."""

import warnings as _warnings

import ingot as _ingot
from ingot.compat.missing import adopt as _adopt
from ingot.compat.missing import provided as _provided

_NAMES = "FwdMode Tape clear_all_gradients grad_for grad_replaced no_grad".split()
_adopt(globals(), "ad", " ".join(_NAMES))

_clear_all = clear_all_gradients  # noqa: F821
_Recording = Tape  # noqa: F821


def clear_all_gradients(gradient_type=None):
    """Sets the gradients, or with SNodeGradType.DUAL the duals, of all fields to zero."""
    from ingot.ad import _clear

    name = getattr(gradient_type, "name", "ADJOINT")
    if name == "DUAL":
        _clear("dual")
    elif name == "ADJOINT":
        _clear_all()


class Tape(_Recording):
    """`ingot.ad.Tape`; `modes` has what each recorded kernel is compiled for."""

    def __init__(self, loss=None, clear_gradients=True, validation=False, grad_check=None, **options):
        if validation and not _ingot.cfg.debug:
            _warnings.warn(
                "Debug mode is disabled, autodiff valid check will not work. Please specify "
                "`qd.init(debug=True)` to enable the check.",
                Warning, stacklevel=2)
            validation = False
        super().__init__(loss, clear_gradients, validation, grad_check, **options)

    def __enter__(self):
        self._inside = True
        return super().__enter__()

    def __exit__(self, *error):
        self._inside = False
        try:
            return super().__exit__(*error)
        finally:
            self._note_modes()

    def _note_modes(self):
        from ingot.compat.quadrants.types.enums import AutodiffMode

        mode = AutodiffMode.VALIDATION if self.validation and self._inside else AutodiffMode.NONE
        for called, _, _ in self._calls:
            called.autodiff_mode = mode

    @property
    def calls(self):
        self._note_modes()
        return _Recording.calls.fget(self)

    @property
    def modes(self):
        from ingot.compat.quadrants.types.enums import AutodiffMode

        return [AutodiffMode.NONE for _ in self._calls]


def __dir__():
    return [name for name in _provided(globals()) if name in _NAMES]
