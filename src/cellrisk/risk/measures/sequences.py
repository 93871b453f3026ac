"""Convolution of sequences of probabilities, many at once: (cells, counts, noises), along the middle axis."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import fft

from cellrisk.system.arrays import Floats

SHORT = 64
"""Up to this length of the shorter sequence, shifting and adding is the fastest way."""

TRANSFORMED_AT_ONCE = 1 << 20
"""So many numbers are transformed together."""


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


def join_fast(x: Sequence[Floats], y: Sequence[Floats], limit: int) -> list[Floats]:
    """x_0 * y_0, and x_k * y_0 + x_0 * y_k for every other k, as `convolve_fast` has them; each is transformed once.

    With the sequences "none survives" and "one survives" of some labels and of others: the same of all of them.

    >>> none, one = np.full((1, 2, 1), 0.25), np.full((1, 1, 1), 0.5)
    >>> [part[0, :, 0].tolist() for part in join_fast([none, one], [none, one], 9)]
    [[0.0625, 0.125, 0.0625], [0.25, 0.25]]
    """
    x, y = ([part[:, :limit] for part in parts] for parts in (x, y))
    if min(x[0].shape[1], y[0].shape[1]) <= SHORT:
        both = [convolve_fast(x[0], y[0], limit)]
        for here, there in zip(x[1:], y[1:], strict=True):
            both.append(_add(convolve_fast(here, y[0], limit), convolve_fast(x[0], there, limit)))
        return both
    widths = [
        max(here.shape[1] + y[0].shape[1], x[0].shape[1] + there.shape[1]) - 1 for here, there in zip(x, y, strict=True)
    ]
    length = fft.next_fast_len(max(widths), real=True)
    out = [np.empty((x[0].shape[0], min(width, limit), x[0].shape[2])) for width in widths]
    step = max(1, TRANSFORMED_AT_ONCE // (length * x[0].shape[2]))
    for start in range(0, len(x[0]), step):
        few = slice(start, start + step)
        x_spectra, y_spectra = ([fft.rfft(part[few], length, axis=1) for part in parts] for parts in (x, y))
        for place, found in enumerate(out):
            spectrum = x_spectra[place] * y_spectra[0]
            if place:
                spectrum += x_spectra[0] * y_spectra[place]
            np.maximum(fft.irfft(spectrum, length, axis=1)[:, : found.shape[1]], 0.0, out=found[few])
    return out


def _convolve(x: Floats, y: Floats, limit: int, transform: bool) -> Floats:
    x, y = x[:, :limit], y[:, :limit]
    if x.shape[1] < y.shape[1]:
        x, y = y, x
    width = min(limit, x.shape[1] + y.shape[1] - 1)
    out = np.zeros((x.shape[0], width, x.shape[2]))
    if y.shape[1] <= SHORT:
        method, numbers_at_once = _shifted, 1 << 15
    elif transform:
        method, numbers_at_once = _transformed, TRANSFORMED_AT_ONCE
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


def _add(x: Floats, y: Floats) -> Floats:
    """Sum of sequences, of which either may be the longer one."""
    longer, shorter = (x, y) if x.shape[1] >= y.shape[1] else (y, x)
    longer[:, : shorter.shape[1]] += shorter
    return longer
