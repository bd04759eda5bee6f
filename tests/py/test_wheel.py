"""What is installed is a wheel: its metadata, its files, and the oldest C library that it runs on."""

import importlib.metadata
import pathlib
import platform
import re
import subprocess
import sys

import pytest
from conftest import ROOT, needs

import ingot

CORE = pathlib.Path(ingot._core.__file__)
installed = pytest.mark.skipif("site-packages" not in CORE.parts, reason="ingot is used from its source folder")


@installed
def test_an_installed_wheel_works():
    done = subprocess.run([sys.executable, str(ROOT / "tools" / "check_wheel.py")], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0 and "wheel: ok" in done.stdout, done.stdout + done.stderr


@pytest.mark.skipif(tuple(map(int, platform.libc_ver()[1].split(".")[:2])) > (2, 36),
                    reason="built against a newer C library, whose versions of symbols it takes")
def test_glibc_that_it_needs():
    """2.34 at most: newer versions of symbols would keep the wheel from older systems."""
    versions = {tuple(map(int, v.split(b"."))) for v in re.findall(rb"GLIBC_(2\.\d+)", CORE.read_bytes())}
    assert versions and max(versions) <= (2, 34), max(versions)


@needs("ziglang", "auditwheel")
def test_a_wheel_for_older_systems(tmp_path):
    done = subprocess.run([sys.executable, str(ROOT / "tools" / "build_wheel.py"), "--tools", sys.executable, "--out", str(tmp_path),
                           sys.executable], capture_output=True, text=True, timeout=3000)
    assert done.returncode == 0 and "wheel: ok" in done.stdout, done.stdout + done.stderr
    (wheel,) = tmp_path.glob("*.whl")
    assert "manylinux_2_28_x86_64" in wheel.name


def test_no_wheel_without_its_tools(tmp_path):
    """An interpreter without ziglang is said, not tried."""
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\nexit 1\n", encoding="utf-8")
    python.chmod(0o755)
    done = subprocess.run([sys.executable, str(ROOT / "tools" / "build_wheel.py"), "--tools", str(python), "--out", str(tmp_path)],
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == 77 and "not run" in done.stdout, done.stdout + done.stderr


def test_metadata_and_files_of_the_project():
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    for word in ('license = "Apache-2.0"', 'license-files = ["LICENSE"]', "keywords", "numpy>=", "[tool.cibuildwheel]",
                 "Programming Language :: Python :: 3.14", "Typing :: Typed"):
        assert word in text, word
    assert (ROOT / "SECURITY.md").exists()
    page = (ROOT / "docs" / "package.md").read_text(encoding="utf-8")
    links = re.findall(r"\]\(([^)]+)\)", page)
    assert links and all(link.startswith("https://") for link in links)  # it is shown where there are no files


@installed
def test_requirements_are_there():
    for requirement in importlib.metadata.requires("ingot"):
        if "extra ==" not in requirement:
            importlib.metadata.version(re.match(r"[\w-]+", requirement)[0])


def test_the_source_folder_says_what_to_do(tmp_path):
    folder = tmp_path / "ingot"
    folder.mkdir()
    (folder / "__init__.py").write_text((ROOT / "ingot" / "__init__.py").read_text(encoding="utf-8"), encoding="utf-8")
    done = subprocess.run([sys.executable, "-c", "import ingot"], cwd=tmp_path, capture_output=True, text=True, timeout=60,
                          env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(tmp_path)})
    assert done.returncode != 0 and "make inplace" in done.stderr and "another folder" in done.stderr, done.stderr
