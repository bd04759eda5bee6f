"""Lambdas that kernels call with values of the run time: funcs made of their text.

Asked by the engine for the attribute `__ingot_func__` of a lambda, which keeps what is made.
"""

import ast
import linecache
import types

from ingot import _console, _core

_trees = {}  # file name -> (its text, lambdas by line)


def adopt(function):
    """The func of a lambda, or None: there is no text that tells which one it is."""
    if function.__name__ != "<lambda>":
        return None
    text = _text(function)
    if text is None:
        return None
    code = function.__code__.replace(co_name="lambda_")
    plain = types.FunctionType(code, function.__globals__, "lambda_", function.__defaults__, function.__closure__)
    plain.__kwdefaults__ = function.__kwdefaults__
    plain.__module__ = function.__module__
    function.__ingot_func__ = made = _core.func(plain, source=text)
    return made


def _text(function):
    code = function.__code__
    source = "".join(linecache.getlines(code.co_filename, function.__globals__)) or _console.kept(code)
    known = _trees.get(code.co_filename)
    if known is None or known[0] != source:
        try:
            tree = ast.parse(source)
        except (SyntaxError, ValueError):
            return None
        lines = {}
        for node in ast.walk(tree):
            if isinstance(node, ast.Lambda):
                lines.setdefault(node.lineno, []).append(node)
        known = _trees[code.co_filename] = source, lines
    found = [node for node in known[1].get(code.co_firstlineno, ()) if _is_it(node, code)]
    if len(found) != 1:
        return None
    body = ast.get_source_segment(source, found[0].body)
    return f"def lambda_({ast.unparse(found[0].args)}):\n    return ({body})\n"


def _is_it(node, code):
    names = [arg.arg for arg in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
    count = code.co_argcount + code.co_kwonlyargcount
    if names != list(code.co_varnames[:count]) or node.args.vararg or node.args.kwarg:
        return False
    if hasattr(code, "co_positions"):  # from 3.11 on
        begin = node.body.lineno, node.body.col_offset
        end = node.body.end_lineno, node.body.end_col_offset
        places = [p for p in code.co_positions() if None not in p and (p[0], p[2]) != (p[1], p[3])]
        inside = [p for p in places if begin <= (p[0], p[2]) and (p[1], p[3]) <= end]
        return bool(inside) and len(inside) == len(places)
    return any(_parts(one) == _parts(code) for one in _compiled(node, code))


def _parts(code):
    return code.co_code, code.co_consts, code.co_names, code.co_freevars


def _compiled(node, code):
    """What the text of a lambda compiles to: in a function whose parameters are what it captures."""
    captured = ast.arguments([], [ast.arg(name) for name in code.co_freevars], None, [], [], None, [])
    codes = [compile(ast.fix_missing_locations(ast.Expression(ast.Lambda(captured, node))), code.co_filename, "eval")]
    for _ in range(2):
        codes = [inner for outer in codes for inner in outer.co_consts if isinstance(inner, types.CodeType)]
    return codes
