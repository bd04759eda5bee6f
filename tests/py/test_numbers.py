"""Numbers that people write: on the command line, in the environment, as options and bounds. What
is none, or too large for the engine, is refused in words that say what was expected."""

import re
import subprocess
import sys

import ingot as qd
import pytest
from ingot import _core, _numbers

# None of these is a number that anything takes.
NEVER = ["", " ", "-", "nan", "inf", "-inf", "1e400", "1e999999999", "0x10", "1_000", "--5", "²", "٣",
         "1e", "1..5", "5 5", "\udc80", "9" * 50, "9" * 5000]


def command(*args):
    done = subprocess.run([sys.executable, "-m", "ingot", *args], capture_output=True, text=True)
    assert "Traceback" not in done.stderr, done.stderr
    return done


@pytest.mark.parametrize("parse", [_numbers.whole, _numbers.size, _numbers.span, _numbers.number])
@pytest.mark.parametrize("text", NEVER + ["-1", "-5", "-5M", "-1d"])
def test_what_is_no_number(parse, text):
    with pytest.raises(ValueError, match=r"^expected .*, got " + re.escape(repr(text)) + "$"):
        parse(text)


def test_numbers():
    assert [_numbers.size(t) for t in ("0", "7", "1k", "1.5K", "2MiB", "3 gb", "1e3", "1t", " 5b ")] == [
        0, 7, 1024, 1536, 2 << 20, 3 << 30, 1000, 1 << 40, 5]
    assert _numbers.size(str(_numbers.MOST)) == _numbers.MOST
    assert [_numbers.span(t) for t in ("90s", "1.5h", "2d", "1W")] == [90, 5400, 172800, 604800]
    assert _numbers.whole("-3", -5) == -3 and _numbers.whole("+7", 0, 7) == 7
    for parse, text in ((_numbers.size, str(_numbers.MOST + 1)), (_numbers.size, "8388608t"),
                        (_numbers.whole, str(_numbers.MOST + 1)), (_numbers.span, "7"), (_numbers.span, "1e300d")):
        with pytest.raises(ValueError, match="^expected "):
            parse(text)
    with pytest.raises(ValueError, match="expected an integer from 1 to 7, got '8'"):
        _numbers.whole("8", 1, 7)


@pytest.mark.parametrize("option", ["--size", "--entries", "--older"])
@pytest.mark.parametrize("text", ["", "nan", "1e400", "-5", "-5M", "9" * 20, "9" * 5000, "x"])
def test_trim_refuses(cache_dir, option, text):
    cache_dir.mkdir(mode=0o700)
    done = command("cache", "trim", "--dir", str(cache_dir), f"{option}={text}")
    assert done.returncode == 2 and done.stdout == ""
    assert f"argument {option}: expected " in done.stderr and repr(text) in done.stderr


def test_trim_takes_a_negative_number_for_one(cache_dir):
    cache_dir.mkdir(mode=0o700)
    done = command("cache", "trim", "--dir", str(cache_dir), "--size", "-5")
    assert done.returncode == 2 and "--size" in done.stderr
    assert command("cache", "trim", "--dir", str(cache_dir), "--size", "8191p").returncode == 2
    assert command("cache", "trim", "--dir", str(cache_dir), "--size", "1e9").returncode == 0


def test_the_environment_of_commands(cache_dir, monkeypatch):
    cache_dir.mkdir(mode=0o700)
    monkeypatch.setenv("INGOT_OFFLINE_CACHE_MAX_SIZE_OF_FILES", "9" * 20)
    for what in ("stat", "trim"):
        done = command("cache", what, "--dir", str(cache_dir))
        assert done.returncode == 1 and done.stderr.startswith(
            "ingot: environment variable INGOT_OFFLINE_CACHE_MAX_SIZE_OF_FILES='9999")
    assert "9999" in command("doctor").stdout


@pytest.mark.parametrize("text", ["0", "-1", "1.5", "nan", "9" * 30])
def test_explain_refuses(cache_dir, text):
    cache_dir.mkdir(mode=0o700)
    done = command("explain", "--dir", str(cache_dir), f"--last={text}")
    assert done.returncode == 2 and "expected an integer from 1 to" in done.stderr


INTEGERS = [n for n, v in _core.settings().items() if type(v) is int and n not in ("dumps", "verbosity")]


@pytest.mark.parametrize("name", INTEGERS)
@pytest.mark.parametrize("text", ["9" * 20, "9" * 5000, "1e400", "nan", "--5", "²", "5,5", "1_0"])
def test_the_environment(monkeypatch, name, text):
    variable = f"INGOT_{name.upper()}"
    monkeypatch.setenv(variable, text)
    with pytest.raises(ValueError, match=f"^environment variable {variable}=.*expected "):
        qd.init()
    monkeypatch.delenv(variable)
    qd.init()


def test_the_environment_in_other_words(monkeypatch):
    for name, text in (("OFFLINE_CACHE_MAX_ENTRIES", "-1"), ("COMPILE_TIMEOUT", "2147483648"), ("FAST_MATH", "maybe"),
                       ("DEFAULT_FP", "33"), ("OFFLINE_CACHE_CLEANING_FACTOR", "nan")):
        with monkeypatch.context() as m:
            m.setenv(f"INGOT_{name}", text)
            with pytest.raises(ValueError, match=f"^environment variable INGOT_{name}='{text}': .*expected "):
                qd.init()
    monkeypatch.setenv("INGOT_OFFLINE_CACHE_MAX_SIZE_OF_FILES", "3G")
    monkeypatch.setenv("QD_RANDOM_SEED", "-7")
    qd.init()
    assert qd.cfg.offline_cache_max_size_of_files == 3 << 30 and qd.cfg.random_seed == -7
    monkeypatch.undo()
    qd.init()


@pytest.mark.parametrize("name", INTEGERS)
@pytest.mark.parametrize("value", [10**20, -(10**20), 2**63, 2**64 + 5])
def test_init(name, value):
    before = _core.settings()
    with pytest.raises(TypeError, match=f"setting '{name}': expected .*, got {value}"):
        qd.init(**{name: value})
    assert _core.settings() == before


@pytest.mark.parametrize("value", [0, -1, True, 1.5, "7", 2**63, 2**64 + 5, 10**400])
def test_bounds(tmp_path, value):
    for option in ("max_bytes", "max_entries"):
        with pytest.raises(ValueError, match=f"^{option} must be a positive int"):
            qd.FileCache(tmp_path / "c", **{option: value})
    with pytest.raises(ValueError, match="^max_entries must be a positive int"):
        qd.MemoryCache(value)


def test_the_engine_takes_nothing_modulo(tmp_path):
    for value in (-1, 2**64, 2**64 + 5):
        with pytest.raises(OverflowError):
            _core.FileCacheCore(str(tmp_path), value, 0)
        with pytest.raises(OverflowError):
            _core._cache_trim(str(tmp_path), 0, value, 0.0)
        with pytest.raises((OverflowError, ValueError, TypeError, qd.IngotRuntimeError)):
            qd.types.vector(value, qd.f32)


def test_the_patience_with_a_server(monkeypatch):
    from ingot import _remote

    for text in ("nan", "1e400", "-1", "soon"):
        monkeypatch.setenv("INGOT_CACHE_REMOTE_TIMEOUT", text)
        assert "INGOT_CACHE_REMOTE_TIMEOUT: expected a number" in _remote.refusal("rediss://h", "k" * 64)
    monkeypatch.setenv("INGOT_CACHE_REMOTE_TIMEOUT", "0.5")
    assert _remote.refusal("rediss://h", "k" * 64) is None


def test_a_directory_with_a_nul():
    with pytest.raises(ValueError, match="NUL"):
        qd.init(offline_cache_file_path="a\0b")
    qd.init()
