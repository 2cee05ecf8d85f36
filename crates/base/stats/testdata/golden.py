"""Writes golden.json: what SciPy and NumPy say to the questions that src/golden.rs asks.

    python3 -m venv venv && venv/bin/pip install scipy==1.17.1 && venv/bin/python golden.py > golden.json
"""

import itertools
import json
import math
import sys

import numpy as np
from scipy import stats

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


def ratings():
    out = []
    for sizes, history in [((3, 3), []), ((5, 5), []), ((3, 3), [3, 2, 2, 4]), ((1, 1), [2] * 12), ((1, 3), [5, 5]), ((6, 6), [9] * 6)]:
        base = [lognormal(7, 0.03) for _ in range(sizes[0])]
        new = [lognormal(7, 0.03, 103.0) for _ in range(sizes[1])]
        past = [[lognormal(7, 0.03) for _ in range(k)] for k in history]
        score = lambda groups: np.array([stats.trim_mean(np.log(g), 0.2) for g in groups])
        a, b = score(base), score(new)
        effect = b.mean() - a.mean()
        sides = []
        for one in (a, b):
            d, squares = len(one) - 1, ((one - one.mean()) ** 2).sum()
            if history:
                d0 = sum(k - 1 for k in history)
                s0 = sum(((score(g) - score(g).mean()) ** 2).sum() for g in past) / d0
                d0 = min(d0, 30)
                trust = 1 if d == 0 else min(1, max(0, (stats.f.sf(squares / d / s0, d, d0) - 0.4) / 0.4))
                sides.append([(trust * d0 * s0 + squares) / (trust * d0 + d) / len(one), trust * d0 + d])
            else:
                sides.append([squares / d / len(one), d])
        single = [n for n, one in enumerate((a, b)) if len(one) == 1]
        if single:
            sides[single[0]][0] *= 12
        (v, n), (w, m) = sides
        welch = (v + w) ** 2 / (v * v / n + w * w / m)
        if not history and len(a) == len(b):
            assert math.isclose(welch, stats.ttest_ind(b, a, equal_var=False).df)
        degrees = 0.75 * welch + 0.25 * min(n, m, welch)
        error = math.sqrt(v + w)
        p = 2 * stats.t.sf(abs(effect) / error, degrees)
        half = stats.t.isf(0.025, degrees) * error
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
