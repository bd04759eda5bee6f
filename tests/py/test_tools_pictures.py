"""qd.tools: pictures, films, VTK and PLY files; and what notebooks show of arrays, fields and explanations."""

import io
import struct

import numpy as np
import pytest
from conftest import needs

import ingot as qd


@pytest.fixture(autouse=True)
def start():
    qd.init()


def ramp(w=40, h=30):
    a = qd.ndarray(qd.f32, (w, h))

    @qd.kernel
    def fill(a: qd.types.ndarray(qd.f32, 2)):
        for i, j in a:
            a[i, j] = i / a.shape[0]

    fill(a)
    return a


def test_images():
    a = ramp()
    pixels = qd.tools.to_image(a)
    assert pixels.shape == (30, 40) and pixels.dtype == np.uint8
    assert pixels[0, 0] == 0 and pixels[0, 39] == round(255 * 39 / 40) and (pixels[0] == pixels[29]).all()
    b = np.zeros((4, 3))
    b[1, 2] = 1  # x is 1, y is 2: the top row
    assert qd.tools.to_image(b)[0, 1] == 255 and qd.tools.to_image(b, origin="upper")[1, 2] == 255
    fire = qd.tools.to_image(a, cmap="fire")
    assert fire.shape == (30, 40, 3) and fire[0, 0].tolist() == [11, 13, 20]
    assert qd.tools.to_image(np.full((2, 2), 5.0), cmap="ice", vmin=0, vmax=5)[0, 0].tolist() == [216, 243, 255]
    assert qd.tools.to_image(np.array([[np.nan, np.inf]]), cmap="gray", vmin=0, vmax=1).tolist() == [[[255] * 3], [[0] * 3]]
    assert qd.tools.to_image(np.array([[True, False]])).tolist() == [[0], [255]]
    f = qd.Vector.field(3, qd.f32, (5, 4))
    f.fill(0.5)
    assert qd.tools.to_image(f).shape == (4, 5, 3)
    for bad, why in ((np.zeros(3), "shape"), (np.zeros((2, 2, 5)), "shape"), (np.zeros((0, 2)), "shape")):
        with pytest.raises(ValueError, match=why):
            qd.tools.to_image(bad)
    with pytest.raises(ValueError, match="cmap is one of"):
        qd.tools.to_image(a, cmap="jet")


@needs("PIL")
def test_files(tmp_path):
    a = ramp()
    qd.tools.imwrite(a, tmp_path / "a.png")
    back = qd.tools.imread(tmp_path / "a.png")
    assert back.shape == (40, 30) and np.abs(back / 255 - a.to_numpy()).max() < 0.003
    assert qd.tools.imread(tmp_path / "a.png", 3).shape == (40, 30, 3)
    assert qd.tools.imread(tmp_path / "a.png", 4, origin="upper").shape == (30, 40, 4)
    assert qd.tools.imresize(a, 20, 10).shape == (10, 20)
    with qd.tools.VideoWriter(tmp_path / "a.gif", fps=20) as video:
        for k in range(5):
            video.write(a.to_numpy() * k / 5, cmap="fire", vmin=0, vmax=1)
    from PIL import Image

    with Image.open(tmp_path / "a.gif") as film:
        assert film.n_frames == 5 and film.size == (40, 30) and film.info["duration"] == 50
    with pytest.raises(ValueError, match="without frames"):
        qd.tools.VideoWriter(tmp_path / "b.gif").close()
    with pytest.raises(ValueError, match="a video is a"):
        qd.tools.VideoWriter(tmp_path / "b.mp4")


@needs("PIL")
def test_shown():
    out = io.StringIO()
    qd.tools.imshow(ramp(), width=20, file=out)
    lines = out.getvalue().splitlines()
    assert len(lines) == 7 and all(line.count("\u2580") == 20 and line.endswith("\x1b[0m") for line in lines)


def test_vtk(tmp_path):
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    qd.tools.write_vtk(qd.from_numpy(x), str(tmp_path / "cells"))
    text = (tmp_path / "cells.vti").read_bytes()
    assert b'WholeExtent="0 2 0 3 0 4"' in text and b'type="Float32" Name="cells"' in text
    at = text.index(b"_", text.index(b"<AppendedData")) + 1
    n = struct.unpack_from("<Q", text, at)[0]
    assert n == 96 and np.frombuffer(text, "<f4", 24, at + 8).tolist() == x.ravel(order="F").tolist()
    qd.tools.write_vtk(np.ones((2, 2), bool), tmp_path / "flat.vti")
    assert b'Extent="0 2 0 2 0 1"' in (tmp_path / "flat.vti").read_bytes()
    with pytest.raises(ValueError, match="two or three axes"):
        qd.tools.write_vtk(np.zeros(3), tmp_path / "x")


def test_ply(tmp_path):
    p = np.arange(12, dtype=np.float32).reshape(4, 3)
    writer = qd.tools.PLYWriter(4, num_faces=2, comment="two triangles")
    writer.add_vertex_pos(p[:, 0], p[:, 1], p[:, 2])
    writer.add_vertex_id()
    writer.add_faces(np.array([0, 1, 2, 1, 2, 3]))
    writer.add_face_piece(np.array([7, 8]))
    writer.export_ascii(tmp_path / "a.ply")
    lines = (tmp_path / "a.ply").read_text().splitlines()
    end = lines.index("end_header")
    assert lines[1] == "format ascii 1.0" and lines[end + 2] == "3.0 4.0 5.0 1" and lines[end + 5] == "3 0 1 2 7"
    writer.export_frame(7, str(tmp_path / "b.ply"))
    data = (tmp_path / "b_000007.ply").read_bytes()
    body = data[data.index(b"end_header\n") + 11:]
    assert len(body) == 4 * 16 + 2 * (1 + 12 + 4)
    assert struct.unpack_from("<fffi", body, 16) == (3, 4, 5, 1) and struct.unpack_from("<B4i", body, 64) == (3, 0, 1, 2, 7)
    with pytest.raises(ValueError, match="a vertex that does not exist"):
        writer.add_faces(np.array([0, 1, 2, 1, 2, 4]))
    with pytest.raises(ValueError, match="positions are missing"):
        qd.tools.PLYWriter(1).export(tmp_path / "c.ply")


# ---- notebooks ----------------------------------------------------------------------------------------


def test_tables():
    a = qd.from_numpy(np.arange(600, dtype=np.float32).reshape(20, 30))
    html = a._repr_html_()
    assert "<b>qd.ndarray</b> f32 (20, 30)" in html and html.count("<tr>") == 14 and "<td>599</td>" in html and "…" in html
    assert "empty" in qd.ndarray(qd.f32, (0, 3))._repr_html_() and "0.0" in qd.ndarray(qd.f32, ())._repr_html_()
    assert "[0, :, :]" in qd.ndarray(qd.i32, (2, 3, 4))._repr_html_()
    assert "Vector" in qd.Vector.ndarray(3, qd.f32, 2)._repr_html_() or "vector" in qd.Vector.ndarray(3, qd.f32, 2)._repr_html_().lower()
    f = qd.field(qd.f32, 5)
    assert "ScalarField" in f._repr_html_() and f._repr_html_().count("<td>") == 5

    @qd.kernel
    def k() -> qd.i32:
        return 1 < 2

    k()
    why = qd.explain(k)
    assert isinstance(why, list) and why._repr_html_().startswith("<ol><li>") and "&lt;" not in why._repr_html_()
