"""`qd.init`, `qd.reset`, `qd.sync` and `qd.cfg`.

An option comes from the call, else from the environment (`INGOT_NAME`, then `QD_NAME`), else it
has its default. Which options there are, the engine's table of settings says.
"""

import os

from ingot import _arch, _core, _helper, _numbers, _options, _server  # noqa: F401: the engine asks _helper and _server, whose
# import must not be under way in some thread when another one forks

_TRUE = ("1", "true", "yes", "on")
_FALSE = ("0", "false", "no", "off")


_checked = []  # the environment was looked at
_timelines = {}  # paths of traces that were asked for


class IngotOptionError(_core.IngotError, KeyError, ValueError):
    """An option of `qd.init` that does not exist, or a variable of the environment whose value it cannot have."""

    __module__ = "ingot"
    __str__ = Exception.__str__  # KeyError would show the message in quotes


def _warn(text):
    """Told at the line outside of Ingot that led here."""
    import sys
    import warnings

    frame, level = sys._getframe(1), 2
    while frame.f_back and frame.f_globals.get("__name__", "").partition(".")[0] == "ingot":
        frame, level = frame.f_back, level + 1
    warnings.warn(text, _core.IngotRuntimeWarning, stacklevel=level)


def _environment(name):
    """(variable, text) of an option in the environment, or None. An empty one counts as unset."""
    for prefix in ("INGOT_", "QD_"):
        text = os.environ.get(prefix + name.upper(), "").strip()
        if text:
            return prefix + name.upper(), text
    return None


def _parse_dtype(text, default):
    stem = str(default)[0]
    name = stem + text if text.isdigit() else text
    dtype = getattr(_core, name, None)
    if not isinstance(dtype, _core.DType):
        raise ValueError(f"expected 32, 64 or the name of a dtype, got {text!r}")
    return dtype


def _parse_truth(text):
    text = text.lower()
    if text not in _TRUE + _FALSE:
        raise ValueError(f"expected 0 or 1, got {text!r}")
    return text in _TRUE


def _parse_as(name, text, default):
    """The value that text gives to an option with this default."""
    if isinstance(default, bool):
        return _parse_truth(text)
    if name == "offline_cache_max_size_of_files":
        return _numbers.size(text)
    if isinstance(default, int):
        return _numbers.whole(text, -_numbers.MOST - 1)
    if isinstance(default, float):
        return _numbers.number(text)
    if isinstance(default, _core.DType):
        return _parse_dtype(text, default)
    return text


def _parse(name, variable, text, default):
    """The same of an environment variable; a ValueError names it."""
    try:
        value = _parse_as(name, text, default)
        if name in _core.settings():
            _core.check_setting(name, value)
    except (TypeError, ValueError) as e:
        raise IngotOptionError(f"environment variable {variable}={text!r}: {e}") from None
    return value


def _check_names(options, known):
    for name in options:
        if name == "default_up":
            raise IngotOptionError("default_up is always the unsigned kin of default_ip: set that")
        if name not in known:
            import difflib

            named = ("arch", "enable_fallback", "require_version")
            near = difflib.get_close_matches(name, [*known, *named], 1)
            hint = f"; did you mean '{near[0]}'?" if near else ": dir(qd.cfg) names them all"
            raise IngotOptionError(f"qd.init has no option '{name}'{hint}")


def _check_effects(options):
    """Tells of options that change nothing. Programs of the reference pass some; under ingot.compat they may."""
    if options.get("reference"):
        return
    for name, value in options.items():
        if name in _options.ACCEPTED and name not in _options.EFFECTIVE and value != _options.ACCEPTED[name]:
            _warn(f"qd.init({name}={value!r}) has no effect in Ingot")


def _check_environment(known):
    """Tells of variables that look like ours and are not, once."""
    if _checked:
        return
    _checked.append(True)
    for topic in os.environ.get("INGOT_LOG", "").replace(",", " ").split():
        if topic not in _options.LOG_TOPICS:
            _warn(f"INGOT_LOG={os.environ['INGOT_LOG']}: there is no topic {topic!r}; "
                  f"the topics are {', '.join(_options.LOG_TOPICS)}")
    ours = {*_options.VARIABLES, *("INGOT_" + name.upper() for name in known)}
    for name in os.environ:
        if name.startswith("INGOT_") and name not in ours:
            near = [o for o in sorted(ours) if _is_near(name, o)]
            if near:
                _warn(f"the environment variable {name} means nothing; did you mean {near[0]}?")
    trace = os.environ.get("INGOT_TRACE")
    if trace and (os.path.isdir(trace) or not os.access(os.path.dirname(os.path.abspath(trace)), os.W_OK)):
        _warn(f"INGOT_TRACE={trace}: no file can be written there, and there is no trace; name a file in a folder of yours")
    level = os.environ.get("INGOT_CPU_LEVEL")
    if level and level not in _options.CPU_LEVELS:
        _warn(f"INGOT_CPU_LEVEL={level} is none of {', '.join(_options.CPU_LEVELS)}, and is ignored")


def _is_near(a, b):
    """But for two letters in one place they are the same, or b has all words of a, two at least
    (INGOT_NUM_THREADS). No module is loaded for this in each start."""
    words = a.split("_")[1:]
    if len(words) > 1 and set(words) <= set(b.split("_")[1:]):
        return True
    same = len(os.path.commonprefix([a, b]))
    same += len(os.path.commonprefix([a[same:][::-1], b[same:][::-1]]))
    return same >= max(len(a), len(b)) - 2


def _check_version(wanted):
    parts = str(wanted).split(".")
    if len(parts) != 3 or not all(p.isdigit() for p in parts):
        raise ValueError(f"require_version is 'major.minor.patch', not {wanted!r}")
    wanted_parts = tuple(int(p) for p in parts)
    have = _options.REFERENCE
    if wanted_parts[0] != have[0] or wanted_parts[1:] > have[1:]:
        text = ".".join(map(str, have))
        raise _core.IngotRuntimeError(
            f"version {wanted} of the interface was asked for; this is {text}"
        )


def _select(arch, enable_fallback):
    """The target to run on: the first of those asked for that exists here."""
    found = _environment("arch")
    if found:
        try:
            arch = _arch.by_name(found[1])
        except ValueError as e:
            raise IngotOptionError(f"environment variable {found[0]}={found[1]!r}: {e}") from None
    if arch is None:
        return _arch.cpu
    wanted = list(arch) if isinstance(arch, (list, tuple)) else [arch]
    wanted = [_arch.by_name(a) if isinstance(a, str) else a for a in wanted]
    for one in wanted:
        if not isinstance(one, _arch.Arch):
            raise TypeError(f"arch={one!r}: expected a target such as qd.cpu")
        if _arch.supported(one):
            return one
    names = ", ".join(a.name for a in wanted)
    if not enable_fallback:
        raise _core.IngotRuntimeError(f"arch={names} is not supported here")
    _warn(f"arch={names} is not supported, falling back to the CPU")
    return _arch.cpu


def _collect(options, known):
    """The options to apply: those of the call over those of the environment."""
    result = {}
    for name, default in known.items():
        found = _environment(name)
        if name in options:
            result[name] = options[name]
            if found:
                _warn(f"environment variable {found[0]}={found[1]} gives way to the argument "
                      f"'{name}' of qd.init")
        elif found:
            result[name] = _parse(name, *found, default)
    return result


class _Config:
    """The options in force, as attributes: `qd.cfg.fast_math`. Setting one is like `qd.init` with it."""

    def __init__(self):
        self._put({}, _arch.cpu)

    def _put(self, given, arch):
        # plain attributes: programs read options in qd.static, which is once in each launch
        options = {**_options.PATHS, **_options.ACCEPTED, **given, **_core.settings()}
        self.__dict__.clear()
        self.__dict__.update(options, arch=arch, _given=given, _arch=arch)

    def __getattr__(self, name):
        raise AttributeError(f"there is no option '{name}'")

    def __setattr__(self, name, value):
        _check_names([name], _known())
        _apply({**self._given, name: value}, self._arch)

    def __dir__(self):
        return ["arch", *_known()]

    def __repr__(self):
        """The arch and the options that differ from their defaults."""
        defaults = {**_DEFAULTS, **_options.PATHS, **_options.ACCEPTED}
        values = {name: getattr(self, name) for name in defaults if name not in _options.INNER}
        changed = [f"{name}={value!r}" for name, value in values.items() if value != defaults[name]]
        return f"<qd.cfg {', '.join([f'arch={self._arch.name}', *changed])}; {len(values)} options, dir(qd.cfg) names them>"


def _known():
    """name -> default of every option, the engine's own first."""
    return {**_core.settings(), **_options.PATHS, **_options.ACCEPTED}


def _dumps(given):
    """What is printed of each kernel; those that come from the disk would show nothing."""
    bits = sum(bit for name, bit in _options.DUMPS.items() if given.get(name))
    return {"dumps": bits, "src_ll_cache": False} if bits else {}


def _verbosity(given):
    level = given.get("log_level", "info")
    if level not in _options.LOG_LEVELS:
        raise ValueError(f"log_level is one of {', '.join(_options.LOG_LEVELS)}, not {level!r}")
    return {"verbosity": _options.LOG_LEVELS[level]}


def _start_timeline(wanted):
    """Begins a trace, unless there is one."""
    path = os.path.abspath(wanted if isinstance(wanted, (str, os.PathLike)) else "ingot-timeline.json")
    if not _core._trace_start(path) and not os.environ.get("INGOT_TRACE") and path not in _timelines:
        _warn(f"timeline: this process writes {next(iter(_timelines), 'another file')} already")
    _timelines.setdefault(path)


def _apply(given, arch):
    settings = {name: value for name, value in given.items() if name not in _options.ACCEPTED}
    settings |= _dumps(given) | _verbosity(given)
    if given.get("timeline"):
        _start_timeline(given["timeline"])
    if given.get("offline_cache_cleaning_policy") == "never":
        settings |= {"offline_cache_max_size_of_files": 0, "offline_cache_max_entries": 0}
    settings["target"] = _arch.target(arch)
    if arch is _arch.python:
        settings["python"] = True
    _core.configure(settings)
    cfg._put(given, arch)


def _drop_fields():
    """Those that exist can be used no more; their memory is given back."""
    import sys

    _core._drop_fields()
    for name in ("ingot._snode", "ingot._fields"):
        if name in sys.modules:
            sys.modules[name]._reset()


def init(arch=None, default_fp=None, default_ip=None, *, enable_fallback=True,
         require_version=None, _test_mode=False, **options):
    """Sets the target and the options. Compiled code in memory and fields are dropped, arrays stay valid.

    arch             qd.cpu, qd.interp, ...; a list means the first that exists
    default_fp       dtype of float literals and of `float`: qd.f32 or qd.f64
    default_ip       dtype of integer literals and of `int`: qd.i32 or qd.i64
    enable_fallback  run on the CPU, with a warning, if the target does not exist here
    require_version  fail unless this version of the reference's interface is provided

    All other options are those of `qd.cfg`. Most can be set in the environment as well, as
    INGOT_NAME or QD_NAME.
    """
    del _test_mode
    if require_version is not None:
        _check_version(require_version)
    if default_fp is not None:
        options["default_fp"] = default_fp
    if default_ip is not None:
        options["default_ip"] = default_ip
    known = _known()
    _check_names(options, known)
    if "target" in options:
        raise TypeError(f"setting 'target': expected arch=qd.cpu or another target, got {options['target']}")
    for name in ("dumps", "verbosity"):
        if name in options:
            raise IngotOptionError(f"qd.init has no option {name!r}: see print_ir and log_level")
    _check_effects(options)
    _check_environment(known)
    chosen = _select(arch, enable_fallback)
    _drop_fields()
    _apply(_collect(options, known), chosen)


def reset():
    """Back to the defaults. Compiled code in memory and fields are dropped, arrays stay valid."""
    _drop_fields()
    _apply({}, _arch.cpu)


def sync():
    """Waits for kernels to finish. On the CPU launches return when their work is done."""
    _core.wait()


_core.register_intrinsic(sync, "sync")
_DEFAULTS = _core.settings()
cfg = _Config()
