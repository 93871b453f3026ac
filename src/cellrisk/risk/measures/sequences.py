"""Convolution of sequences of probabilities, many at once: (cells, counts, noises), along the middle axis."""

from __future__ import annotations

import numpy as np
from scipy import fft

from cellrisk.system.arrays import Floats

SHORT = 64
"""Up to this length of the shorter sequence, shifting and adding is the fastest way."""


def convolve(x: Floats, y: Floats, limit: int) -> Floats:
    """Convolution cut at ``limit`` terms, term by term: all are positive, so that no digit is lost anywhere.

    >>> convolve(np.array([[[0.5], [0.5]]]), np.array([[[0.5], [0.5]]]), 9)[0, :, 0].tolist()
    [0.25, 0.5, 0.25]
    """
    return _convolve(x, y, limit, transform=False)


def convolve_fast(x: Floats, y: Floats, limit: int) -> Floats:
    """The same with long sequences through a Fourier transform: an error of about 1e-16 of the largest terms.

    Right where only terms of about that size are used. What rounding leaves below 0 is set to 0.
    """
    return _convolve(x, y, limit, transform=True)


def _convolve(x: Floats, y: Floats, limit: int, transform: bool) -> Floats:
    x, y = x[:, :limit], y[:, :limit]
    if x.shape[1] < y.shape[1]:
        x, y = y, x
    width = min(limit, x.shape[1] + y.shape[1] - 1)
    out = np.zeros((x.shape[0], width, x.shape[2]))
    if y.shape[1] <= SHORT:
        method, numbers_at_once = _shifted, 1 << 15
    elif transform:
        method, numbers_at_once = _transformed, 1 << 20
    else:
        method, numbers_at_once = _one_by_one, 1 << 20
    step = max(1, numbers_at_once // (width * x.shape[2]))
    for start in range(0, len(x), step):
        few = slice(start, start + step)
        method(x[few], y[few], out[few])
    return out


def _shifted(x: Floats, y: Floats, out: Floats) -> None:
    width = out.shape[1]
    scratch = np.empty_like(x)
    for shift in range(y.shape[1]):
        span = min(x.shape[1], width - shift)
        np.multiply(x[:, :span], y[:, shift : shift + 1], out=scratch[:, :span])
        out[:, shift : shift + span] += scratch[:, :span]


def _one_by_one(x: Floats, y: Floats, out: Floats) -> None:
    for cell in range(x.shape[0]):
        for noise in range(x.shape[2]):
            out[cell, :, noise] = np.convolve(x[cell, :, noise], y[cell, :, noise])[: out.shape[1]]


def _transformed(x: Floats, y: Floats, out: Floats) -> None:
    length = fft.next_fast_len(x.shape[1] + y.shape[1] - 1, real=True)
    spectrum = fft.rfft(x, length, axis=1) * fft.rfft(y, length, axis=1)
    np.maximum(fft.irfft(spectrum, length, axis=1)[:, : out.shape[1]], 0.0, out=out)
