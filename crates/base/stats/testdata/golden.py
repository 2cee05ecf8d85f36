"""Writes golden.json: what SciPy and NumPy say to the questions that src/golden.rs asks.

    python3 -m venv venv && venv/bin/pip install scipy==1.17.1 && venv/bin/python golden.py > golden.json
"""

import itertools
import json
import math
import sys

import numpy as np
from scipy import optimize, stats

rng = np.random.default_rng(20261121)
DEGREES = [1, 2, 3.7, 10, 30, 58, 500]


def lognormal(n, scale=0.1, base=100.0):
    return [float(x) for x in base * np.exp(scale * rng.normal(size=n))]


def tails():
    t = [[x, d, 2 * stats.t.sf(x, d)] for x in [0.01, 0.5, 1, 2.5, 5, 20, 100] for d in DEGREES]
    tq = [[p, d, stats.t.isf(p, d)] for p in [0.4, 0.1, 0.05, 0.025, 0.005, 1e-4, 1e-7] for d in DEGREES]
    n = [[z, 2 * stats.norm.sf(z)] for z in [0, 0.1, 1, 1.96, 3.29, 6, 12, 30]]
    nq = [[p, stats.norm.isf(p)] for p in [0.9, 0.5, 0.2, 0.025, 0.0005, 1e-6, 1e-12]]
    f = [[x, a, b, stats.f.sf(x, a, b)] for x in [0.2, 1, 3, 9, 40] for a in [1, 2, 4, 8, 18] for b in [1, 5, 10, 30]]
    return {"student": t, "student_quantile": tq, "normal": n, "normal_quantile": nq, "fisher": f}


def enumerated(first, second):
    """The share of ways to deal out mid-ranks at least so far from the mean."""
    ranks = stats.rankdata(first + second)
    m, mean = len(second), len(second) * (len(ranks) + 1) / 2
    off = abs(ranks[len(first):].sum() - mean)
    sums = [ranks[list(c)].sum() for c in itertools.combinations(range(len(ranks)), m)]
    return sum(abs(s - mean) >= off - 1e-9 for s in sums) / len(sums)


def interval(first, second):
    """Order statistics of the differences at the exact quantile of U; none where there is none."""
    n, m = len(first), len(second)
    us = [sum(c) - m * (m + 1) / 2 for c in itertools.combinations(range(1, n + m + 1), m)]
    k = 0
    while sum(u <= k for u in us) / len(us) <= 0.025:
        k += 1
    d = sorted(b - a for a in first for b in second)
    return [d[k - 1], d[len(d) - k]] if k else None


def ranks():
    out = []
    for n, m, kind in [(5, 5, "plain"), (6, 9, "plain"), (20, 20, "plain"), (7, 8, "ties"), (3, 4, "plain"), (40, 30, "many")]:
        a, b = lognormal(n), lognormal(m, base=108.0)
        if kind != "plain":
            a, b = [round(x / 5) * 5.0 for x in a], [round(x / 5) * 5.0 for x in b]
        if kind == "plain":
            p = stats.mannwhitneyu(a, b, method="exact").pvalue
        elif kind == "ties":
            p = enumerated(a, b)
        else:
            p = stats.mannwhitneyu(a, b, method="asymptotic", use_continuity=True).pvalue
        u = stats.mannwhitneyu(b, a).statistic
        shift = float(np.median([y - x for x in a for y in b]))
        row = {"first": a, "second": b, "p": p, "dominance": 2 * u / (n * m) - 1, "shift": shift}
        if n + m <= 15:
            row["interval"] = interval(a, b)
        out.append(row)
    return out


def deviations(part, d, d0):
    """Normal deviations of a part of the expected variance (Paulson 1942)."""
    root, one, other = np.cbrt(part), 2 / (9 * d), 2 / (9 * d0)
    return ((1 - other) * root - (1 - one)) / np.sqrt(other * root * root + one)


def prior(sets):
    """Degrees and variance of a history: d0 by the quartiles, s0 by the likelihood."""
    v, d = np.array([s[0] for s in sets]), np.array([float(s[1]) for s in sets])

    def typical(d0):
        return np.quantile(v * ((1 - 2 / (9 * d0)) / (1 - 2 / (9 * d))) ** 3, 0.5)

    def spread(d0):
        z = deviations(v / typical(d0), d, d0)
        return (np.quantile(z, 0.75) - np.quantile(z, 0.25)) / 1.349

    few, many, limit = math.log(2), math.log(30), 1 + 1 / math.sqrt(len(sets))
    if spread(30) <= limit:
        few = many
    for _ in range(7):
        between = (few + many) / 2
        if spread(math.exp(between)) > limit:
            many = between
        else:
            few = between
    d0 = math.exp(many)

    def most(d):
        # Two deviations up.
        ends = deviations(1e12, d, d0)
        return optimize.brentq(lambda part: deviations(part, d, d0) - 2, 1e-3, 1e12, xtol=1e-12, rtol=1e-14) if ends > 2 else math.inf

    reach, variance = np.array([most(one) for one in d]), typical(d0)
    for _ in range(6):
        part = np.minimum(v / variance, reach)
        weight = d / (d0 + d * part)
        variance *= (weight * part).sum() / weight.sum()
    return 1 / (1 / d0 + 1 / d.sum()), variance


def chance(d0, s0, sides):
    """How likely both sides scatter as the history says, and not otherwise (Bayes)."""
    seen = [(s, float(d)) for s, d in sides if d > 0]
    degrees = sum(d for _, d in seen)
    if degrees < 1:
        return 1.0
    density = lambda s, d, times: stats.f.pdf(s / (s0 * times), d, d0) / times
    right = math.prod(density(s, d, 1) for s, d in seen)
    both = [2.0**k for k in (-4, -3, -2, -1, 1, 2, 3, 4)]
    one = [2.0, 4.0, 8.0, 16.0]
    other = sum(math.prod(density(s, d, times) for s, d in seen) / right for times in both) / len(both)
    other += sum(density(s, d, times) / density(s, d, 1) for s, d in seen for times in one) / (len(one) * len(seen))
    return 1 / (1 + (0.19 + 0.14 * (min(max(degrees, 2), 8) - 2)) * other)


def welch(sides, counts, doubt):
    """Error and degrees of a difference of sides, each a variance and its degrees."""
    parts = [s / count for (s, _), count in zip(sides, counts)]
    if 1 in counts:
        parts[counts.index(1)] *= 12
    total = sum(parts)
    degrees = total**2 / sum(part**2 / d for part, (_, d) in zip(parts, sides))
    least = min(d for _, d in sides)
    return math.sqrt(total), degrees + doubt * (min(least, degrees) - degrees)


def ratings():
    out = []
    for sizes, history in [((3, 3), []), ((5, 5), []), ((3, 3), [3, 2, 2, 4]), ((1, 1), [2] * 12), ((1, 3), [5, 5]), ((6, 6), [9] * 6)]:
        base = [lognormal(7, 0.03) for _ in range(sizes[0])]
        new = [lognormal(7, 0.03, 103.0) for _ in range(sizes[1])]
        past = [[lognormal(7, 0.03) for _ in range(k)] for k in history]
        score = lambda groups: np.array([stats.trim_mean(np.log(g), 0.2) for g in groups])
        a, b = score(base), score(new)
        effect = b.mean() - a.mean()
        counts = [len(a), len(b)]
        own = [(one.var(ddof=1) if len(one) > 1 else 0.0, len(one) - 1) for one in (a, b)]
        alone = None
        if max(counts) > 1:
            sides = [side if side[1] else other for side, other in zip(own, own[::-1])]
            alone = welch(sides, counts, 0.25)
        if history:
            d0, s0 = prior([(score(g).var(ddof=1), len(g) - 1) for g in past])
            sides = [((d0 * s0 + d * s) / (d0 + d), d0 + d) for s, d in own]
            weights = [chance(d0, s0, own) if alone else 1.0]
            mixed = [welch(sides, counts, 0.0)]
            if alone:
                weights.append(1 - weights[0])
                mixed.append(alone)
        else:
            weights, mixed = [1.0], [alone]
        tail = lambda x: sum(w * stats.t.sf(x / error, degrees) for w, (error, degrees) in zip(weights, mixed))
        p = min(1, 2 * tail(abs(effect)))
        half = optimize.brentq(lambda x: tail(x) - 0.025, 0, 1e3, xtol=1e-14, rtol=1e-14)
        low, high = effect - half, effect + half
        out.append({"base": base, "new": new, "history": past, "effect": effect, "p": p, "low": low, "high": high})
    return out


def families():
    out = []
    for n in (1, 4, 25):
        p = [float(x) for x in rng.uniform(size=n) ** 3]
        out.append({"p": p, "q": [float(q) for q in stats.false_discovery_control(p)]})
    return out


def noise():
    out = []
    for n in (8, 40):
        x = lognormal(n)
        x = [round(v) * 1.0 for v in x]
        out.append({"values": x, "drift": stats.spearmanr(x, range(n)).statistic})
    return out


def plain(value):
    """Python's own numbers, each on as many digits as it needs."""
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    return value if value is None or isinstance(value, str) else float(value)


parts = {"tails": tails(), "ranks": ranks(), "ratings": ratings(), "families": families(), "noise": noise()}
json.dump(plain(parts), sys.stdout, indent=0)
print()
