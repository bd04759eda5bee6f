"""The text of functions that stand in no file: `python -c`, a prompt, a script on standard input.

Called by the engine (src/py/see/source.c) when neither file, linecache nor loader has the text. What
is yielded here are guesses; the engine takes the first that compiles to the function's own code.
"""

import linecache
import os
import stat
import sys
import textwrap

MAX_TEXT = 1 << 24
MAX_LINES = 5000  # of a prompt's history


def texts(file, code):
    """Texts that may hold the function of this code, which says that it is from `file`."""
    typed = kept(code)
    if typed:
        return [typed]
    if file == "<string>":
        return _command()
    if file == "<stdin>":
        return _prompt(code.co_name) if hasattr(sys, "ps1") else _standard_input()
    return []


def kept(code):
    """What Python keeps of a text that was typed, by the code that it became; "" where it does not. Since 3.14 that is
    not in linecache.cache, and inspect asks this function."""
    ask = getattr(linecache, "_getlines_from_code", None)
    return "".join(ask(code)) if ask else ""


def _command():
    """What follows -c, which may stand behind other letters. Some versions of Python cut its
    indentation."""
    words = iter(getattr(sys, "orig_argv", [])[1:])
    for word in words:
        if not word.startswith("-") or word in ("-", "--"):
            break
        if word.startswith("--"):
            continue
        for i, letter in enumerate(word[1:], 2):
            if letter in "cWX":  # the others take nothing
                text = word[i:] or next(words, "")
            if letter == "c":
                return [text + "\n", textwrap.dedent(text) + "\n"]
            if letter in "WX":
                break
    return []


def _standard_input():
    """The script itself, where it can be read again: a file, not a pipe."""
    try:
        about = os.fstat(0)
        if not stat.S_ISREG(about.st_mode) or about.st_size > MAX_TEXT:
            return []
        return [os.pread(0, about.st_size, 0).decode("utf-8", "replace")]
    except OSError:
        return []


def _prompt(name):
    """The statements of the prompt's history that define such a function, the newest first."""
    readline = sys.modules.get("readline")
    if readline is None:
        return []
    last = readline.get_current_history_length()
    lines = [readline.get_history_item(i) or "" for i in range(max(1, last - MAX_LINES), last + 1)]
    return [text for text in reversed(_statements(lines)) if f"def {name}" in text]


def _statements(lines):
    """Each begins at a line without indentation; decorators belong to what follows them."""
    found, decorated = [], False
    for line in lines:
        if found and (decorated or not _begins(line)):
            found[-1].append(line)
        else:
            found.append([line])
        decorated = line.startswith("@") or decorated and not _begins(line)
    return ["\n".join(part) + "\n" for part in found]


def _begins(line):
    words = line.split(None, 1)
    return bool(words) and not line[0].isspace() and line[0] not in ")]}" and not (
        words[0].rstrip(":") in ("else", "elif", "except", "finally"))
