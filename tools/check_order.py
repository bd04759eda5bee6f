"""Checks that the text of an IR depends on our code alone: C leaves open in which order the
arguments of a call and the operands of most operators are evaluated, so at most one of them may
emit instructions or LLVM IR, number a type or ask the gate. The other one goes into a variable
before it.

What emits is found by name: SEEDS, and whatever calls one of them. A static function counts in
its own file only.

    check_order.py [root]     exit status 1 and one line per place
"""

import pathlib
import re
import sys

from check_size import functions
from check_swallow import code_of

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDERS = ("ir", "front", "ad", "pass", "gen")

SEEDS = frozenset("""
    ing_ir_emit ing_ir_emit_count ing_ir_emit_above ing_ir_put_list ing_ir_loop_reserve
    ing_ir_loop_finish ing_ir_block_begin ing_ir_block_end ing_ir_add_arg ing_ir_add_func
    ing_ir_type_ref ing_ir_type_array ing_ir_type_field ing_ir_type_tensor ing_ir_type_struct
    ing_gen_put ing_gen_def ing_gen_declare ing_gen_keep ing_gen_args
""".split())

CALL = re.compile(r"(?<![\w.>])(\w+)\s*\(")
GATE = re.compile(r"ops\s*->\s*(\w+)\s*\(")
NOT_RECORDED = {"captured", "describe", "memo_key", "near", "place", "where"}
TOKEN = re.compile(r"\w+|->|&&|\|\||[-+*/%&|^<>=!]=|<<|>>|\+\+|--|\S")
WORDS = {"if", "while", "for", "switch", "return", "sizeof", "case", "do", "else", "goto"}
CONTROL = {"if", "while", "for", "switch"}
SEQUENCED = {"&&", "||", "?", ":", ";"}


class Function:
    def __init__(self, path, name, first, head, body):
        self.path, self.name, self.first, self.body = path, name, first, body
        self.private = head.startswith("static")
        self.calls = set(CALL.findall(body))
        self.emits = name in SEEDS or bool(set(GATE.findall(body)) - NOT_RECORDED)


def read(root):
    for folder in FOLDERS:
        for path in sorted((root / "src" / folder).glob("*.[ch]")):
            lines = code_of(path.read_text(encoding="utf-8")).splitlines()
            for name, first, size in functions(lines):
                text = "\n".join(lines[first - 1 : first - 1 + size])
                brace = text.index("{")
                yield Function(path, name, first + text.count("\n", 0, brace), text, text[brace:])


def find_emitting(all_of):
    """(path or None, name) of what emits; None: known in every file."""
    found = {(None, name) for name in SEEDS}
    grew = True
    while grew:
        grew = False
        for f in all_of:
            # One of a header is known wherever it is included.
            key = (f.path if f.private and f.path.suffix == ".c" else None, f.name)
            if key not in found and (
                f.emits or any((None, c) in found or (f.path, c) in found for c in f.calls)
            ):
                found.add(key)
                grew = True
    return found


class Reader:
    """Goes over a function's tokens; notes where two operands of one level emit."""

    def __init__(self, f, emitting):
        self.f, self.emitting, self.found = f, emitting, []
        self.tokens = [(m[0], m.start()) for m in TOKEN.finditer(f.body)]
        self.at = 0
        self.listed = False  # the brackets closed last were an initialiser

    def emits(self, name):
        return (None, name) in self.emitting or (self.f.path, name) in self.emitting

    def note(self, count, what):
        if count > 1:
            end = self.tokens[self.at - 1][1]
            self.found.append((self.f.first + self.f.body.count("\n", 0, end), what))

    def group(self, called, listed):
        """Up to its closing token; whether something in it emits. `called`: commas separate the
        arguments of a call; `listed`: the elements of an initialiser."""
        items = here = 0
        any_emits = False
        name = None
        while self.at < len(self.tokens):
            token, _ = self.tokens[self.at]
            self.at += 1
            if token in ")]}":
                break
            if token in "([{":
                inner = self.open(token, name)
                any_emits |= inner
                here += inner
                if name in CONTROL or (token == "{" and not (called or listed or self.listed)):
                    here = 0  # a statement ends
                name = ")"
                continue
            if token == "," or token in SEQUENCED:
                self.note(here, "operands")
                if token == "," and (called or listed):
                    items += here > 0
                    here = 0
                elif token != ",":
                    here = here > 0 and token not in ";" and (called or listed)
                else:
                    here = 0
            name = token
        self.note(here, "operands")
        if called or listed:
            self.note(items + (here > 0), "arguments" if called else "elements")
        return any_emits

    def open(self, token, name):
        """An operand in brackets, with the call that it may be the arguments of."""
        before = self.tokens[self.at - 2][0] if self.at > 1 else ""
        word = bool(name and re.match(r"\w", name))
        if token == "(" and word and name not in WORDS:
            reached = self.tokens[self.at - 3][0] if self.at > 2 else ""
            owner = self.tokens[self.at - 4][0] if self.at > 3 else ""
            inner = self.group(True, False)
            gate = reached == "->" and owner == "ops" and name not in NOT_RECORDED
            return inner or gate or (reached not in ("->", ".") and self.emits(name))
        listed = token == "{" and before in ("=", ",", "{", ")", "]") and self.is_list(before)
        inner = self.group(False, listed)
        self.listed = listed
        return inner

    def is_list(self, before):
        """A brace after `)` opens a block, unless it is a compound literal: (type){...}."""
        if before != ")":
            return True
        depth = 0
        for i in range(self.at - 2, -1, -1):
            token = self.tokens[i][0]
            depth += (token == ")") - (token == "(")
            if depth == 0:
                before = self.tokens[i - 1][0] if i else ""
                return not re.match(r"\w", before) or before == "return"
        return False


def check(root):
    all_of = list(read(root))
    emitting = find_emitting(all_of)
    found = []
    for f in all_of:
        reader = Reader(f, emitting)
        reader.group(False, False)
        found += [f"{f.path.relative_to(root)}:{line}: {what} that emit, in an order that C leaves open"
                  for line, what in reader.found]
    return found


def main(argv):
    found = check(pathlib.Path(argv[1]).resolve() if len(argv) > 1 else ROOT)
    print("\n".join(found) if found else "order: ok")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
