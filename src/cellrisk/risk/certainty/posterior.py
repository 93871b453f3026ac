"""What a released value tells of a count: the posterior mean, for an attacker who holds a negative binomial prior."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy import fft

from cellrisk.errors import InvalidInput
from cellrisk.noise.channel import AdditiveChannel, CountChannel, TransitionTable
from cellrisk.noise.distributions import Noise
from cellrisk.risk.certainty.count_priors import CategoryPrior
from cellrisk.system.arrays import Floats, Integers

FAR = 100.0
"""Counts whose terms are below e^-FAR of the largest are left out of a posterior mean."""
MOST_COUNTS = 1 << 24
"""Counts that a posterior mean is summed over."""
TRIED = 65
"""Counts that are tried at once where an end is looked for."""
BLOCK = 256
"""Released values that share the counts of one sum, at the least; as many as the noise is wide if that is more."""
FEW_PRODUCTS = 1 << 22
"""Multiplications below which a convolution is done term by term."""


def posterior_means(prior: CategoryPrior, channel: CountChannel, values: Integers, *, clamped: bool = True) -> Floats:
    """Return w(v) = E[N | v] for released values v, ascending: the posterior mean of a category's count.

        w(v) = sum_n n p(n) P(v | n) / sum_n p(n) P(v | n)

    p is the prior and P the first setting of the channel; the value 0 stands for a count that is released as zero or
    not at all, unless the values are not ``clamped``: then they are as the noise made them, below 0 as well. All terms
    are positive. Relative error about 1e-12, whatever the prior, and also for values that the prior makes all but
    impossible. Under noise w rises with v, because noise is log-concave. A category of shape 0 has w = 0.
    """
    if prior.shape == 0 or not len(values):
        return np.zeros(len(values))
    if isinstance(channel, TransitionTable):
        return _by_rows(prior, channel, values)
    if not isinstance(channel, AdditiveChannel):
        raise InvalidInput("no posterior mean is known for this channel", got=type(channel).__name__)
    noise, means = channel.noise, values.astype(np.float64)
    hidden = int(np.count_nonzero(values == 0)) if clamped else 0
    if hidden:
        means[:hidden] = _mean_of_hidden(prior, noise, channel.first - 1)
    together = noise.log_centre is not None  # running sums go on until there is a long gap
    method, longest = _by_running_sums if together else _by_convolution, max(BLOCK, math.ceil(noise.scale))
    start = len(values) if noise.is_none else hidden
    while start < len(values):  # runs of values that share the counts of one sum
        gaps = np.flatnonzero(np.diff(values[start:]) > longest)
        stop = start + int(gaps[0]) + 1 if len(gaps) else len(values)
        stop = stop if together else int(np.searchsorted(values[:stop], values[start] + longest))
        run = slice(start, stop)
        low, high = int(values[run][0]), int(values[run][-1])
        first, last = (max(_window(prior, noise, value)[end], 1) for end, value in enumerate((low, high)))
        if last - first > MOST_COUNTS:
            what, got = "too many counts are possible behind one released value", f"{last - first:,}"
            fix = "give a prior that fits the table, or another epsilon"
            raise InvalidInput(what, got=got, allowed=f"up to {MOST_COUNTS:,}", fix=fix)
        means[run] = method(prior, noise, np.arange(first, last + 1), low, high)[values[run] - low]
        start = stop
    return np.maximum.accumulate(means)


def _by_running_sums(prior: CategoryPrior, noise: Noise, counts: Integers, low: int, high: int) -> Floats:
    """Noise with P(j) = c b^|j| but at 0. L(v) = sum_{n < v} g(n) b^(v - n) is b (L(v - 1) + g(v - 1)), and from above
    likewise: running sums of g(n) b^-n and g(n) b^n, in logarithms, so nothing leaves the range of numbers."""
    fall, log_centre = 1.0 / noise.scale, noise.log_centre or 0.0
    first, end = min(int(counts[0]), low), max(int(counts[-1]), high)
    ramp = np.arange(end - first + 1.0) * fall
    log_p = np.full(len(ramp), -np.inf)
    log_p[counts - first] = prior.log_pmf(counts)
    sums = []
    for logs in (log_p, log_p + np.log(np.maximum(first + np.arange(len(ramp)), 1.0))):
        below = np.logaddexp.accumulate(np.append(-np.inf, logs + ramp)[:-1]) - ramp
        above = np.logaddexp.accumulate(np.append(-np.inf, (logs - ramp)[::-1])[:-1])[::-1] + ramp
        sums.append(np.logaddexp(np.logaddexp(below, above), logs + log_centre)[low - first : high - first + 1])
    nobody = prior.log_pmf(np.zeros(1)) + noise.log_mass(np.arange(low, high + 1.0))
    return np.asarray(np.exp(sums[1] - np.logaddexp(sums[0], nobody)))


def _by_convolution(prior: CategoryPrior, noise: Noise, counts: Integers, low: int, high: int) -> Floats:
    """Any noise. e^(c v) = e^(c n) e^(c (v - n)): p(n) e^(c n) is convolved with f(d) e^(c d), and -c is the slope
    of log f where the largest term of the middle value is, so both factors are largest there."""
    shown = np.arange(low, high + 1.0)
    distance = np.arange(low - counts[-1], high - counts[0] + 1.0)
    log_p, log_f = prior.log_pmf(counts), noise.log_mass(distance)
    middle = len(shown) // 2
    mode = int(np.argmax(prior.log_concave(counts) + log_f[middle : middle + len(counts)][::-1]))
    at = middle + len(counts) - 1 - mode
    beside = slice(max(at - 1, 0), at + 2)
    tilt = -float(np.gradient(log_f[beside]).mean()) if len(log_f) > 1 else 0.0
    log_p, log_f = log_p + tilt * (counts - counts[mode]), log_f + tilt * (distance - distance[at])
    top = log_p.max() + log_f.max()
    weights, kernel = np.exp(log_p - log_p.max()), np.exp(log_f - log_f.max())
    total, mean = (_convolve(kernel, part) for part in (weights, weights * counts))
    offset = counts[mode] + distance[at]
    nobody = prior.log_pmf(np.zeros(1)) + noise.log_mass(shown) + tilt * (shown - offset) - top
    return np.asarray(mean / (total + np.exp(np.minimum(nobody, 700.0))))


def _convolve(kernel: Floats, weights: Floats) -> Floats:
    """Return the sums in which every weight has its place in the kernel."""
    if (len(kernel) - len(weights) + 1) * len(weights) <= FEW_PRODUCTS:
        return np.convolve(kernel, weights, "valid")
    length = fft.next_fast_len(len(kernel), real=True)  # what is folded is not looked at
    product = fft.rfft(kernel, length) * fft.rfft(weights, length)
    return np.asarray(fft.irfft(product, length)[len(weights) - 1 : len(kernel)])


def _mean_of_hidden(prior: CategoryPrior, noise: Noise, most: int) -> float:
    """Return E[N | N + rounded noise <= most]."""
    first, last = _span(lambda n: prior.log_concave(n) + noise.log_at_most(most - n), prior.last_likely(FAR))
    counts = np.append(0.0, np.arange(max(first, 1), max(last, 1) + 1.0))
    logs = prior.log_pmf(counts) + noise.log_at_most(most - counts)
    weights = np.exp(logs - logs.max())
    return float(weights @ counts / weights.sum())


def _window(prior: CategoryPrior, noise: Noise, value: int) -> tuple[int, int]:
    """Return the counts that matter behind a value: both ends rise with it."""
    top = max(prior.last_likely(FAR), value) + noise.far(FAR)
    return _span(lambda n: prior.log_concave(n) + noise.log_mass(value - n), top)


def _span(logs: Callable[[Floats], Floats], top: float) -> tuple[int, int]:
    """Return the counts up to ``top`` whose terms are above e^-FAR of the largest; the logarithms are concave."""

    def last(first: int, end: int, holds: Callable[[Floats], NDArray[np.bool_]]) -> int:
        """Return the last number of those, from ``first`` on, at which something holds."""
        while first < end:
            tried = np.unique(np.linspace(first + 1.0, end, TRIED).round())
            good = int(np.count_nonzero(holds(tried)))
            end = int(tried[good]) - 1 if good < len(tried) else end
            first = int(tried[good - 1]) if good else first
        return first

    end = math.ceil(top)
    mode = last(0, end, lambda counts: logs(counts) > logs(counts - 1.0))
    least = float(logs(np.array([float(mode)]))[0]) - FAR
    below = mode - last(0, mode, lambda steps: logs(mode - steps) >= least)
    return below, last(mode, end, lambda counts: logs(counts) >= least)


def _by_rows(prior: CategoryPrior, table: TransitionTable, values: Integers) -> Floats:
    """A table of transitions: the counts that may be released as one of the values are gone through.

    A value that no count is released as tells nothing but itself.
    """
    near = np.arange(-table.radius, table.radius + 1)
    counts = np.unique((values[values > 0][:, None] + near).clip(0))
    if (values == 0).any():
        counts = np.union1d(counts, np.arange(int(table.zero_radius[0])))
    rows = [table.row(count) for count in counts[counts < (math.inf if table.period else len(table.rows))].tolist()]
    owner = np.repeat(counts[: len(rows)], [len(row[0]) for row in rows])
    released, pmf = np.concatenate([row[0] for row in rows]), np.concatenate([row[1] for row in rows])
    order = np.argsort(released, kind="stable")
    order = order[pmf[order] > 0]
    owner, released, pmf = owner[order], released[order], pmf[order]
    known, begins = np.unique(released, return_index=True)
    logs = prior.log_pmf(owner) + np.log(pmf)
    weights = np.exp(logs - np.repeat(np.maximum.reduceat(logs, begins), np.diff(begins, append=len(logs))))
    means = np.add.reduceat(weights * owner, begins) / np.add.reduceat(weights, begins)
    nearest = np.minimum(np.searchsorted(known, values), len(known) - 1)
    return np.asarray(np.where(known[nearest] == values, means[nearest], values))
