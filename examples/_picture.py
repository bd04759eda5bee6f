"""Colours for the demo: maps numbers to pixels and writes a PNG and an animated GIF."""

import pathlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from PIL import Image, ImageDraw

# Anchor colours, interpolated linearly. Vorticity: blue and orange from a near-black middle,
# so that still water is dark. Speed: dark violet to pale yellow, rising in lightness.
CURL = ["#d8f3ff", "#58c4f0", "#1f6fb5", "#12294f", "#0b0d14", "#4a1a17", "#b5441f",
        "#f5a742", "#fff2c9"]
SPEED = ["#0b0d14", "#2a1a4a", "#63236b", "#a83266", "#e2604d", "#f9a857", "#fdf3b8"]
SOLID = (205, 210, 218)


def ramp(anchors: Sequence[str], n: int = 256) -> Any:
    """n x 3 bytes."""
    rgb = np.array([[int(a[i : i + 2], 16) for i in (1, 3, 5)] for a in anchors], float)
    at = np.linspace(0, len(anchors) - 1, n)
    columns = [np.interp(at, np.arange(len(anchors)), rgb[:, k]) for k in range(3)]
    return np.stack(columns, axis=1).round().astype(np.uint8)


def level(values: Any, low: float, high: float, n: int = 256) -> Any:
    """Numbers between low and high to 0 .. n - 1."""
    return (np.clip((values - low) / (high - low), 0, 1) * (n - 1)).round().astype(np.uint8)


def curl_index(curl: Any, scale: float, n: int = 256) -> Any:
    """Vorticity with weak swirls lifted: the square root keeps the sign."""
    x = np.clip(curl / scale, -1, 1)
    return level(np.sign(x) * np.sqrt(np.abs(x)), -1, 1, n)


def still(curl: Any, speed: Any, solid: Any, inflow: float, scale: float) -> Image.Image:
    """Vorticity above, speed below, as an RGB image."""
    top = ramp(CURL)[curl_index(curl, scale)]
    bottom = ramp(SPEED)[level(speed, 0, 1.5 * inflow)]
    for half in (top, bottom):
        half[solid] = SOLID
    gap = np.zeros((6, curl.shape[1], 3), np.uint8)
    return Image.fromarray(np.concatenate([top, gap, bottom]))


def frame(curl: Any, solid: Any, scale: float, colours: int = 127) -> Image.Image:
    """One GIF frame at half size: palette indices, the solid as the last colour."""
    h, w = curl.shape[0] // 2 * 2, curl.shape[1] // 2 * 2
    small = curl[:h, :w].reshape(h // 2, 2, w // 2, 2).mean(axis=(1, 3))
    index = curl_index(small, scale, colours)
    index[solid[:h:2, :w:2]] = colours
    image = Image.frombytes("P", (w // 2, h // 2), index.tobytes())
    image.putpalette(np.append(ramp(CURL, colours), [SOLID], axis=0).astype(np.uint8).tobytes())
    return image


def save_gif(path: pathlib.Path, frames: Sequence[Image.Image], milliseconds: int = 50) -> None:
    frames[0].save(
        path, save_all=True, append_images=frames[1:], duration=milliseconds, loop=0,
        optimize=False, disposal=1,
    )


def curve(values: Any, title: str, log: bool = False, dots: Any = None, pixels: int = 300) -> Any:
    """Numbers over their index as a line, others as dots, in a frame with the least and the greatest."""
    every = np.concatenate([np.asarray(one, float) for one in (values, dots) if one is not None])
    scaled = np.log10(np.maximum(every, 1e-30)) if log else every
    low, high = scaled.min(), scaled.max()
    image = Image.new("RGB", (pixels, pixels), (245, 245, 245))
    draw = ImageDraw.Draw(image)
    left, top, right, bottom = 12, 34, pixels - 12, pixels - 26
    draw.rectangle((left, top, right, bottom), outline=(160, 165, 175))
    draw.text((left, 8), title, fill=(40, 44, 52))
    draw.text((right - 60, top + 3), f"{every.max():>9.3g}", fill=(110, 115, 125))
    draw.text((left + 4, bottom - 13), f"{every.min():.3g}", fill=(110, 115, 125))

    def place(k: int, n: int, y: float) -> tuple[float, float]:
        return (left + (right - left) * (k + 0.5) / n,
                bottom - 8 - (bottom - top - 16) * (y - low) / max(high - low, 1e-12))

    n = len(values)
    draw.line([place(k, n, scaled[k]) for k in range(n)], fill=(31, 111, 181), width=2)
    for k in range(n, len(scaled)):
        x, y = place(k - n, len(scaled) - n, scaled[k])
        draw.ellipse((x - 3, y - 3, x + 3, y + 3), outline=(181, 68, 31), width=2)
    return np.asarray(image)
