#!/usr/bin/env python3
"""Builds the site of the documentation with MkDocs (Material) in build/site: the pages of docs/ as they are, those of the root,
and a reference that mkdocstrings makes of the docstrings of the installed package.

    make docs            # a virtual environment of its own, build/venv-docs, with the group `docs` of pyproject.toml

The pages are copied to build/docs first: links that leave docs/ (ARCHITECTURE.md, bench/, examples/) are led to copies or, where
the site has none, to plain text. With --strict (make docs uses it) a broken link is an error.
"""

import argparse
import html
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGES, SITE = ROOT / "build" / "docs", ROOT / "build" / "site"
LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!https?:|#)([^)#\s]+)(#[^)]*)?\)")

# Groups of the reference: page, title, (module, names); None: all of the module.
REFERENCE = [
    ("kernels", "Kernels and the runtime", "ingot", """kernel func real_func data_oriented Kernel pure template Template ref
        init reset sync explain counters perf_dispatch Arch create_stream create_event Stream Event stream_parallel"""),
    ("arrays", "Arrays, fields and structs", "ingot", """ndarray Ndarray from_numpy from_dlpack BufferView tensor wrap Backend
        ScalarNdarray VectorNdarray MatrixNdarray StructNdarray Tensor VectorTensor MatrixTensor field Field ScalarField MatrixField StructField SNode
        FieldsBuilder Layout axes rescale_index get_addr Struct dataclass Vector Matrix DType sparse_matrix_builder"""),
    ("language", "Functions of the language", "ingot", """static static_assert static_print loop_config grouped ndrange cast bit_cast bit_shr
        select random randn volatile_load stop_grad block_local cache_read_only assume_in_range zero one abs acos acosh asin asinh atan atan2 atanh cbrt ceil cos cosh erf erfc
        exp exp2 expm1 floor hypot log log10 log1p log2 max min pow raw_div raw_mod round rsqrt sin sinh sqrt tan tanh trunc atomic_add
        atomic_sub atomic_mul atomic_min atomic_max atomic_and atomic_or atomic_xor atomic_exchange atomic_cas svd polar_decompose eig
        sym_eig make_spd solve"""),
    ("graph", "Graph kernels", "ingot.graph", "do_while parallel_context parallel checkpoint GraphStatus visualize"),
    ("math", "qd.math", "ingot.math", None),
    ("types", "qd.types", "ingot.types", "NDArray ndarray Template template ref vector matrix struct sparse_matrix_builder"),
    ("ad", "qd.ad: gradients", "ingot.ad", None),
    ("linalg", "qd.linalg: sparse matrices", "ingot.linalg", None),
    ("algorithms", "qd.algorithms: whole arrays", "ingot.algorithms", None),
    ("profiler", "qd.profiler", "ingot.profiler", None),
    ("tools", "qd.tools: pictures and files", "ingot.tools", None),
    ("caching", "Steps, caches and fingerprints", "ingot", """CachedStep StepSequence MemoryCache FileCache Fingerprinter
        Content File Identity Ordered Pieces trace"""),
    ("errors", "Errors and warnings", "ingot", """IngotError IngotCompilationError IngotSyntaxError IngotCallError IngotTypeError
        IngotNameError IngotAttributeError IngotValueError IngotRuntimeError IngotRuntimeTypeError IngotArgumentError
        IngotAssertionError IngotIndexError IngotZeroDivisionError IngotOptionError FingerprintError CacheMismatchError IngotWarning
        IngotRuntimeWarning IngotStaticCallWarning"""),
]
# Public names of `ingot` that are values, modules or other names for the above.
ELSEWHERE = """f16 f32 f64 float16 float32 float64 i8 i16 i32 i64 int8 int16 int32 int64 u1 u8 u16 u32 u64 uint1 uint8 uint16 uint32
    uint64 amdgpu arm64 cpu cuda gpu interp metal python vulkan x64 x86_64 cfg root i j k l ij ik il jk jl kl ijk ijl ikl jkl ijkl
    ad algorithms graph linalg math profiler tools types fingerprint checkpoint GraphStatus graph_do_while graph_parallel
    graph_parallel_context"""

NAV = [
    ("Start", ["tutorial.md", "getting-started.md", "howto/examples.md", "faq.md"]),
    ("The language", ["language/*", "fields.md", "compound-types.md", "autodiff.md", "graph.md"]),
    ("How to", ["howto/*", "interop.md", "processes.md", "type-checkers.md", "profiling.md"]),
    ("Caching", ["caching.md", "cache-tools.md", "cached-steps.md", "fingerprint.md"]),
    ("Performance", ["performance.md", "compatibility.md"]),
    ("Reference", ["reference/*", "options.md", "errors.md"]),
    ("Compatibility", ["compat.md", "differences.md"]),
    ("Project", ["ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "internals/*"]),
]

CONFIG = """site_name: Ingot
site_description: Kernels written in Python, compiled to native parallel code, and remembered
docs_dir: {docs}
site_dir: {site}
use_directory_urls: false
extra_css: [style.css]
validation: {{anchors: warn, unrecognized_links: warn}}
theme:
  name: material
  font: false
  features: [navigation.tabs, navigation.top, navigation.indexes, content.code.copy, search.suggest, toc.follow]
  palette:
    - {{media: "(prefers-color-scheme: light)", scheme: default, primary: deep purple, accent: deep orange, toggle: {{icon: material/weather-night, name: dark}}}}
    - {{media: "(prefers-color-scheme: dark)", scheme: slate, primary: deep purple, accent: deep orange, toggle: {{icon: material/weather-sunny, name: light}}}}
markdown_extensions:
  - admonition
  - attr_list
  - tables
  - toc: {{permalink: true}}
  - pymdownx.highlight
  - pymdownx.superfences
plugins:
  - search
  - mkdocstrings:
      handlers:
        python:
          options:
            extensions: [{columns}]
            force_inspection: true
            show_source: false
            show_root_heading: true
            show_root_toc_entry: true
            heading_level: 2
            members_order: source
            filters: ["!^_"]
            docstring_section_style: list
            show_bases: false
            merge_init_into_class: true
            separate_signature: true
nav:
{nav}
"""

# Signatures are wrapped, not cut; tables with many columns fit beside the tables of contents.
STYLE = """.doc-signature code { white-space: pre-wrap; }
.md-typeset table:not([class]) th { min-width: 2rem; }
.md-typeset table:not([class]) th, .md-typeset table:not([class]) td { padding: 0.5em 0.75em; }
"""


def names_of(module, names):
    if names is None:
        kinds = ("function", "Func", "builtin_function_or_method", "type")  # values have no docstring of their own
        code = f"import {module} as m; print(' '.join(n for n in m.__all__ if type(getattr(m, n)).__name__ in {kinds}))"
        names = subprocess.run([sys.executable, "-I", "-c", code], check=True, capture_output=True, text=True).stdout
    return names.split()


def write_reference():
    folder = PAGES / "reference"
    folder.mkdir(parents=True)
    for page, title, module, names in REFERENCE:
        lines = [f"# {title}", ""]
        for name in names_of(module, names):
            lines += [f"::: {module}.{name}", ""]
        (folder / f"{page}.md").write_text("\n".join(lines), encoding="utf-8")


def copy_pages():
    shutil.rmtree(PAGES, ignore_errors=True)
    shutil.copytree(ROOT / "docs", PAGES, ignore=shutil.ignore_patterns("reference", "package.md"))
    for name in ("ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md"):
        shutil.copy(ROOT / name, PAGES / name)
    (PAGES / "style.css").write_text(STYLE, encoding="utf-8")
    for page in PAGES.rglob("*.md"):
        page.write_text(rewritten(page), encoding="utf-8")


def bars_in_tables(text):
    """`a \\| b` in a cell, whose backslash MkDocs would show: there the bar is written as HTML has it."""
    def code(match):
        if "\\|" not in match[1]:
            return match[0]
        inside = html.escape(match[1]).replace("\\|", "&#124;")
        return f"<code>{inside}</code>"

    lines = text.split("\n")
    return "\n".join(re.sub(r"`([^`]*)`", code, line) if line.startswith("|") else line for line in lines)


def rewritten(page):
    """A page whose links stay within the site."""
    origin = ROOT / page.name if (ROOT / page.name).exists() and page.parent == PAGES else ROOT / "docs" / page.relative_to(PAGES)

    def lead(match):
        bang, text, target, anchor = match[1], match[2], match[3], match[4] or ""
        real = (origin.parent / target).resolve()
        if real.is_relative_to(ROOT / "docs"):
            here = PAGES / real.relative_to(ROOT / "docs")
        elif (PAGES / real.name).exists() and real.parent == ROOT:
            here = PAGES / real.name
        elif real.suffix in (".png", ".gif", ".svg") and real.exists():
            here = PAGES / "pictures" / real.name
            here.parent.mkdir(exist_ok=True)
            shutil.copy(real, here)
        else:
            return f"{text} (`{real.relative_to(ROOT)}`)"
        return f"{bang}[{text}]({os.path.relpath(here, page.parent)}{anchor})"

    parts = re.split(r"(^```.*?^```$)", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    return "".join(part if part.startswith("```") else LINK.sub(lead, bars_in_tables(part)) for part in parts)


def nav():
    lines, seen = ["  - Home: index.md"], {"index.md"}
    for title, patterns in NAV:
        lines.append(f"  - {title}:")
        for pattern in patterns:
            found = sorted(PAGES.glob(pattern)) if "*" in pattern else [PAGES / pattern]
            for page in found:
                name = page.relative_to(PAGES).as_posix()
                if page.exists() and name not in seen:
                    seen.add(name)
                    lines.append(f"      - {name}")
    left = [p.relative_to(PAGES).as_posix() for p in sorted(PAGES.rglob("*.md")) if p.relative_to(PAGES).as_posix() not in seen]
    if left:
        lines += ["  - More:", *(f"      - {name}" for name in left)]
    return "\n".join(lines)


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--strict", action="store_true")
    args = options.parse_args()
    copy_pages()
    write_reference()
    config = ROOT / "build" / "mkdocs.yml"
    config.write_text(CONFIG.format(columns=ROOT / "tools" / "docs_columns.py", docs=PAGES, site=SITE, nav=nav()), encoding="utf-8")
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--clean", "-f", str(config), *(["--strict"] if args.strict else [])]
    code = subprocess.run(command, cwd=ROOT / "build").returncode
    if code == 0:
        print(f"docs: {SITE / 'index.html'}, {len(list(SITE.rglob('*.html')))} pages; with search: python3 -m http.server -d {SITE.relative_to(ROOT)}")
    return code


if __name__ == "__main__":
    sys.exit(main())
