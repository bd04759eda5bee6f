"""The folders of src/ from the bottom up: each may include only itself and those above it
in this list. One place, used by the checkers."""

LAYERS = (
    "base", "store", "gate", "ir", "front", "ad", "pass", "gen", "image", "trace",
    "record", "compile", "cache", "rt", "launch", "graph", "py",
)

# Rooms of src/py, each with those that it may include besides itself and src/py's own files; module.c,
# which puts them together, includes any. `value` is outside of the kernels' revision (tools/revision.py),
# so that nothing else may use it.
ROOMS = {
    "array": (),
    "see": ("array", "call"),
    "call": ("array", "see", "tool"),
    "tool": ("array", "see", "call"),
    "value": ("array", "see", "call"),
}

# Headers that any folder may include.
EVERYWHERE = {
    "gen/abi.h": "the task ABI, plain C, shared by code, interpreter and runtime",
    "ing_revision.h": "made at build time",
}

# Single permitted steps upwards: (folder, header) -> why.
EXCEPTIONS = {
}
