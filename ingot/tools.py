"""`qd.tools`: pictures, films, and files for ParaView and Blender.

    qd.tools.imwrite(image, "wave.png")
    qd.tools.imshow(image)                    # in a notebook, or as characters in a terminal

Images are arrays of shape (width, height) or (width, height, channels), as kernels index pixels, with x to the
right and y up; `origin="upper"` takes (rows, columns) instead, as Pillow and NumPy do. Bytes are shown as they
are, floats from 0 to 1 (beyond that they are cut); `cmap` gives colours to numbers. Pillow makes the files.
"""

import os
import sys

__all__ = ["PLYWriter", "VideoWriter", "imread", "imresize", "imshow", "imwrite", "to_image", "write_vtk"]

# Anchors of colour maps, dark to light, interpolated linearly.
_MAPS = {
    "gray": ["#000000", "#ffffff"],
    "fire": ["#0b0d14", "#2a1a4a", "#63236b", "#a83266", "#e2604d", "#f9a857", "#fdf3b8"],
    "ice": ["#0b0d14", "#12294f", "#1f6fb5", "#58c4f0", "#d8f3ff"],
    "diverging": ["#d8f3ff", "#58c4f0", "#1f6fb5", "#12294f", "#0b0d14", "#4a1a17", "#b5441f", "#f5a742", "#fff2c9"],
}


def _numpy(x):
    """The elements of anything that kernels take, as a NumPy array."""
    import numpy as np

    if hasattr(x, "to_numpy"):
        x = x.to_numpy()
    elif hasattr(x, "detach"):
        x = x.detach().cpu().numpy()
    return np.asarray(x)


def _pillow():
    try:
        from PIL import Image
    except ImportError:
        raise ImportError("qd.tools needs Pillow for pictures: pip install pillow") from None
    return Image


def _colours(name):
    import numpy as np

    if name not in _MAPS:
        raise ValueError(f"cmap is one of {', '.join(_MAPS)}, not {name!r}")
    rgb = np.array([[int(a[i : i + 2], 16) for i in (1, 3, 5)] for a in _MAPS[name]], float)
    at = np.linspace(0, len(rgb) - 1, 256)
    return np.stack([np.interp(at, np.arange(len(rgb)), rgb[:, k]) for k in range(3)], 1).round().astype(np.uint8)


def to_image(image, *, cmap=None, vmin=None, vmax=None, origin="lower"):
    """The bytes of an image, (rows, columns) or (rows, columns, 3 or 4), the first row on top.

    cmap        colours for an image of numbers: gray, fire, ice, diverging
    vmin, vmax  the numbers of the first and the last colour; without them the least and the largest one
    """
    import numpy as np

    x = _numpy(image)
    if origin not in ("lower", "upper"):
        raise ValueError(f"origin is 'lower' or 'upper', not {origin!r}")
    if x.ndim == 3 and x.shape[2] == 1:
        x = x[:, :, 0]
    if x.ndim not in (2, 3) or (x.ndim == 3 and x.shape[2] not in (3, 4)) or 0 in x.shape:
        raise ValueError(f"an image has the shape (width, height) or (width, height, 3 or 4), not {x.shape}")
    if cmap is not None or vmin is not None or vmax is not None:
        if x.ndim != 2:
            raise ValueError("cmap, vmin and vmax are for images of numbers, not of colours")
        x = x.astype(np.float64)
        finite = x[np.isfinite(x)]
        low = vmin if vmin is not None else finite.min() if finite.size else 0.0
        high = vmax if vmax is not None else finite.max() if finite.size else 1.0
        at = np.nan_to_num((x - low) / ((high - low) or 1.0), nan=0.0, posinf=1.0, neginf=0.0)
        x = _colours(cmap or "gray")[(np.clip(at, 0, 1) * 255).round().astype(np.uint8)]
    elif np.issubdtype(x.dtype, np.floating):
        x = (np.clip(np.nan_to_num(x.astype(np.float64)), 0, 1) * 255).round().astype(np.uint8)
    elif x.dtype == bool:
        x = x.astype(np.uint8) * 255
    elif x.dtype != np.uint8:
        x = np.clip(x, 0, 255).astype(np.uint8)
    if origin == "lower":
        x = x.swapaxes(0, 1)[::-1]
    return np.ascontiguousarray(x)


def imwrite(image, path, **options):
    """Writes an image; what the name ends in says how (.png, .jpg, .webp, ...). `options` are those of `to_image`."""
    _pillow().fromarray(to_image(image, **options)).save(os.fspath(path))


def imread(path, channels=0, origin="lower"):
    """An image as an array of bytes, (width, height) or (width, height, channels). channels: 1, 3, 4, or 0: as the file has."""
    import numpy as np

    modes = {0: None, 1: "L", 3: "RGB", 4: "RGBA"}
    if channels not in modes:
        raise ValueError(f"channels is 0, 1, 3 or 4, not {channels!r}")
    with _pillow().open(os.fspath(path)) as picture:
        mode = modes[channels] or (picture.mode if picture.mode in ("L", "RGB", "RGBA") else "RGB")
        x = np.array(picture.convert(mode))
    return np.ascontiguousarray(x[::-1].swapaxes(0, 1)) if origin == "lower" else x


def imresize(image, width, height=None, **options):
    """The image as bytes, larger or smaller (nearest pixel), in the order that `to_image` gives."""
    import numpy as np

    height = height or width
    picture = _pillow().fromarray(to_image(image, **options))
    return np.asarray(picture.resize((int(width), int(height)), 0))


def _png(pixels):
    import io

    file = io.BytesIO()
    _pillow().fromarray(pixels).save(file, "png")
    return file.getvalue()


def _terminal(pixels, columns):
    """Two rows of pixels per line of text: the upper half block has the colours of both."""
    import numpy as np

    if pixels.ndim == 2:
        pixels = np.repeat(pixels[:, :, None], 3, 2)
    h, w = pixels.shape[:2]
    columns = min(columns, w)
    rows = max(2, round(h * columns / w) // 2 * 2)
    y = (np.arange(rows) * h // rows)[:, None]
    x = (np.arange(columns) * w // columns)[None, :]
    small = pixels[y, x, :3]
    lines = []
    for top, bottom in zip(small[0::2], small[1::2]):
        cells = [f"\x1b[38;2;{a[0]};{a[1]};{a[2]};48;2;{b[0]};{b[1]};{b[2]}m\u2580" for a, b in zip(top, bottom)]
        lines.append("".join(cells) + "\x1b[0m")
    return "\n".join(lines)


class _Shown:
    """An image that a notebook shows, and a terminal that understands colours."""

    def __init__(self, pixels, columns):
        self._pixels, self._columns = pixels, columns

    def _repr_png_(self):
        return _png(self._pixels)

    def __repr__(self):
        h, w = self._pixels.shape[:2]
        return f"<an image of {w} x {h} pixels>"

    def __str__(self):
        return _terminal(self._pixels, self._columns)


def _in_notebook():
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    return shell is not None and hasattr(shell, "kernel")


def imshow(image, *, width=None, file=None, **options):
    """Shows an image: in a notebook as a picture, else as coloured characters on `file` (the standard output).

    width  columns of text; without it the terminal's
    """
    import shutil

    shown = _Shown(to_image(image, **options), width or shutil.get_terminal_size().columns)
    if _in_notebook() and file is None:
        sys.modules["IPython"].display.display(shown)
    else:
        print(shown, file=file)


class VideoWriter:
    """Frames in one file, by Pillow: `.gif`, `.webp` or `.png` (animated).

        with qd.tools.VideoWriter("wave.gif", fps=25) as video:
            for _ in range(100):
                step(x)
                video.write(x, cmap="fire")
    """

    def __init__(self, path, fps=25, loop=True):
        self.path = os.fspath(path)
        if os.path.splitext(self.path)[1].lower() not in (".gif", ".webp", ".png"):
            raise ValueError(f"a video is a .gif, .webp or .png, not {self.path!r}")
        if not fps > 0:
            raise ValueError(f"fps is a number above 0, not {fps!r}")
        self.fps, self.loop, self.frames = fps, loop, []

    def write(self, image, **options):
        """Adds a frame; `options` are those of `to_image`."""
        frame = _pillow().fromarray(to_image(image, **options))
        if self.frames and frame.size != self.frames[0].size:
            raise ValueError(f"a frame of {frame.size} pixels in a video of {self.frames[0].size}")
        self.frames.append(frame)

    def close(self):
        """Writes the file."""
        if not self.frames:
            raise ValueError(f"{self.path}: a video without frames")
        first, *others = self.frames
        more = {"loop": 0} if self.loop else {}
        first.save(self.path, save_all=True, append_images=others, duration=round(1000 / self.fps), **more)

    def __enter__(self):
        return self

    def __exit__(self, kind, *rest):
        if kind is None:
            self.close()


def write_vtk(scalar_field, filename):
    """Writes a scalar array or field of two or three axes as `filename.vti`, which ParaView reads: a cell for each element."""
    import numpy as np

    x = _numpy(scalar_field)
    if x.ndim not in (2, 3):
        raise ValueError(f"write_vtk takes an array of two or three axes, not one of shape {x.shape}")
    names = {"f4": "Float32", "f8": "Float64", "i1": "Int8", "i2": "Int16", "i4": "Int32", "i8": "Int64",
             "u1": "UInt8", "u2": "UInt16", "u4": "UInt32", "u8": "UInt64"}
    if x.dtype.kind == "b" or x.dtype == np.float16:
        x = x.astype(np.uint8 if x.dtype.kind == "b" else np.float32)
    kind = names[x.dtype.str[1:]]
    path = os.fspath(filename)
    path = path if path.endswith(".vti") else path + ".vti"
    extent = " ".join(f"0 {n}" for n in (*x.shape, *(1,) * (3 - x.ndim)))
    name = os.path.splitext(os.path.basename(path))[0]
    data = np.asfortranarray(x.astype(x.dtype.newbyteorder("<"))).tobytes(order="F")
    head = (f'<?xml version="1.0"?>\n<VTKFile type="ImageData" version="1.0" byte_order="LittleEndian" header_type="UInt64">\n'
            f'<ImageData WholeExtent="{extent}" Origin="0 0 0" Spacing="1 1 1">\n<Piece Extent="{extent}">\n'
            f'<CellData Scalars="{name}">\n<DataArray type="{kind}" Name="{name}" format="appended" offset="0"/>\n'
            f'</CellData>\n</Piece>\n</ImageData>\n<AppendedData encoding="raw">\n_')
    with open(path, "wb") as f:
        f.write(head.encode() + len(data).to_bytes(8, "little") + data + b"\n</AppendedData>\n</VTKFile>\n")


class PLYWriter:
    """Points, and triangles or quadrangles between them, as a .ply file, which Blender, MeshLab and others read.

        writer = qd.tools.PLYWriter(num_vertices=len(x))
        writer.add_vertex_pos(x[:, 0], x[:, 1], x[:, 2])
        writer.export("points.ply")
    """

    _TYPES = {"char": "i1", "uchar": "u1", "short": "i2", "ushort": "u2", "int": "i4", "uint": "u4", "float": "f4",
              "double": "f8"}

    def __init__(self, num_vertices, num_faces=0, face_type="tri", comment="created by PLYWriter"):
        if num_vertices <= 0 or num_faces < 0:
            raise ValueError(f"{num_vertices} vertices and {num_faces} faces cannot be written")
        if face_type not in ("tri", "quad"):
            raise ValueError(f"face_type is 'tri' or 'quad', not {face_type!r}")
        if "\n" in comment:
            raise ValueError("the comment is one line")
        self.num_vertices, self.num_faces, self.face_type, self.comment = num_vertices, num_faces, face_type, comment
        self._vertices, self._faces, self._indices = [], [], None

    def _add(self, channels, count, key, data_type, data):
        if data_type not in self._TYPES:
            raise ValueError(f"data_type is one of {', '.join(self._TYPES)}, not {data_type!r}")
        if not key.isidentifier() or key in (name for name, *_ in channels):
            raise ValueError(f"{key!r} is no name of a channel, or is there already")
        x = _numpy(data).reshape(-1)
        if len(x) != count:
            raise ValueError(f"channel {key!r} has {len(x)} numbers for {count} elements")
        channels.append((key, data_type, x.astype(self._TYPES[data_type])))

    def add_vertex_channel(self, key, data_type, data):
        """A number of each vertex, under a name: char, uchar, short, ushort, int, uint, float or double."""
        self._add(self._vertices, self.num_vertices, key, data_type, data)

    def add_face_channel(self, key, data_type, data):
        """A number of each face, under a name."""
        self._add(self._faces, self.num_faces, key, data_type, data)

    def _add_floats(self, names, columns):
        for name, column in zip(names, columns):
            self.add_vertex_channel(name, "float", column)

    def add_vertex_pos(self, x, y, z):
        """Where the vertices are."""
        self._add_floats("xyz", (x, y, z))

    def add_vertex_normal(self, nx, ny, nz):
        """Directions at the vertices."""
        self._add_floats(("nx", "ny", "nz"), (nx, ny, nz))

    def add_vertex_vel(self, vx, vy, vz):
        """Velocities of the vertices."""
        self._add_floats(("vx", "vy", "vz"), (vx, vy, vz))

    def add_vertex_color(self, r, g, b):
        """Colours of the vertices, from 0 to 1."""
        self._add_floats(("red", "green", "blue"), (r, g, b))

    def add_vertex_alpha(self, alpha):
        """How opaque the vertices are, from 0 to 1."""
        self._add_floats(("Alpha",), (alpha,))

    def add_vertex_rgba(self, r, g, b, a):
        """Colours and alpha of the vertices, from 0 to 1."""
        self.add_vertex_color(r, g, b)
        self.add_vertex_alpha(a)

    def add_vertex_id(self):
        """Numbers the vertices."""
        self.add_vertex_channel("id", "int", range(self.num_vertices))

    def add_vertex_piece(self, piece):
        """The piece that each vertex belongs to."""
        self.add_vertex_channel("piece", "int", piece)

    def add_face_id(self):
        """Numbers the faces."""
        self.add_face_channel("id", "int", range(self.num_faces))

    def add_face_piece(self, piece):
        """The piece that each face belongs to."""
        self.add_face_channel("piece", "int", piece)

    def add_faces(self, indices):
        """The vertices of each face, three or four after each other."""
        import numpy as np

        corners = 3 if self.face_type == "tri" else 4
        indices = _numpy(indices).astype(np.int32)
        if indices.size != corners * self.num_faces:
            raise ValueError(f"{indices.size} indices for {self.num_faces} faces of {corners} corners")
        if indices.size and (indices.min() < 0 or indices.max() >= self.num_vertices):
            raise ValueError("a face has a vertex that does not exist")
        self._indices = indices.reshape(self.num_faces, corners)

    def _head(self, form):
        names = [name for name, *_ in self._vertices]
        if not {"x", "y", "z"} <= set(names):
            raise ValueError("positions are missing: add_vertex_pos")
        if self.num_faces and self._indices is None:
            raise ValueError("the faces are missing: add_faces")
        lines = ["ply", f"format {form} 1.0", f"comment {self.comment}", f"element vertex {self.num_vertices}"]
        lines += [f"property {kind} {name}" for name, kind, _ in self._vertices]
        if self.num_faces:
            lines += [f"element face {self.num_faces}", "property list uchar int vertex_indices"]
            lines += [f"property {kind} {name}" for name, kind, _ in self._faces]
        return "\n".join([*lines, "end_header", ""])

    def _tables(self):
        import numpy as np

        order = "<" if sys.byteorder == "little" else ">"
        tables = []
        for channels, count, faces in ((self._vertices, self.num_vertices, False), (self._faces, self.num_faces, True)):
            fields = [("_n", "u1"), ("_at", order + "i4", (self._indices.shape[1],))] if faces and count else []
            table = np.zeros(count, fields + [(name, order + self._TYPES[kind]) for name, kind, _ in channels])
            for name, _, data in channels:
                table[name] = data
            if faces and count:
                table["_n"], table["_at"] = self._indices.shape[1], self._indices
            tables.append(table)
        return tables

    def export(self, path):
        """Writes the file, in binary."""
        head = self._head(f"binary_{sys.byteorder}_endian")
        with open(path, "wb") as f:
            f.write(head.encode() + b"".join(table.tobytes() for table in self._tables()))

    def export_ascii(self, path):
        """Writes the file as text."""
        head = self._head("ascii")
        with open(path, "w", encoding="utf-8") as f:
            f.write(head)
            for table in self._tables():
                for row in table:
                    words = [str(w) for item in row for w in (item if getattr(item, "ndim", 0) else [item])]
                    f.write(" ".join(words) + "\n")

    def _numbered(self, series_num, path):
        stem, end = os.path.splitext(os.fspath(path))
        return f"{stem}_{series_num:06d}{end or '.ply'}"

    def export_frame(self, series_num, path):
        """Writes a frame of a series: `points.ply` becomes `points_000007.ply`."""
        self.export(self._numbered(series_num, path))

    def export_frame_ascii(self, series_num, path):
        """Writes a frame of a series as text."""
        self.export_ascii(self._numbered(series_num, path))
