"""Logistic regression of many coalitions: Newton's method, one coalition after the other, in one compiled loop.

Minimised is Σ log(1 + exp(−y w·x)) + ½ Σ_j r_j w_j² over the records of a coalition. A coalition's records are taken in
the order of the data and Newton starts at the same point for every coalition, so a utility depends on the coalition
alone: not on the one before it, nor on who computes it.
"""

import math

import numpy as np

from datassay._jit import kernel

ACCURACY, LOG_LOSS, CLIPPED_LOG_LOSS = 0, 1, 2
SETS, CHAIN, JOINED = 0, 1, 2
SMALL = 1e-13  # what of a record may be left out of the span of others, in parts of its length
LARGEST_LOSS = 36.04365338911715  # scikit-learn's: minus the logarithm of the spacing of float64 at 1


@kernel
def _loss(z):
    """log(1 + exp(−z)), for any z."""
    if z > 0:
        return math.log1p(math.exp(-z))
    return math.log1p(math.exp(z)) - z


@kernel
def _dot(a, b):
    # Four sums at a time: strict arithmetic does not reorder a single one.
    d = len(a)
    s0 = s1 = s2 = s3 = 0.0
    j = 0
    while j + 4 <= d:
        s0 += a[j] * b[j]
        s1 += a[j + 1] * b[j + 1]
        s2 += a[j + 2] * b[j + 2]
        s3 += a[j + 3] * b[j + 3]
        j += 4
    while j < d:
        s0 += a[j] * b[j]
        j += 1
    return (s0 + s1) + (s2 + s3)


@kernel
def _solve(matrix, right):
    """Solve in place by Cholesky's factor of the lower triangle; False if the matrix is not positive definite."""
    d = len(right)
    for j in range(d):
        pivot = matrix[j, j]
        for k in range(j):
            pivot -= matrix[j, k] * matrix[j, k]
        if not pivot > 0:
            return False
        pivot = math.sqrt(pivot)
        matrix[j, j] = pivot
        for i in range(j + 1, d):
            entry = matrix[i, j]
            for k in range(j):
                entry -= matrix[i, k] * matrix[j, k]
            matrix[i, j] = entry / pivot
    for j in range(d):
        total = right[j]
        for k in range(j):
            total -= matrix[j, k] * right[k]
        right[j] = total / matrix[j, j]
    for j in range(d - 1, -1, -1):
        total = right[j]
        for i in range(j + 1, d):
            total -= matrix[i, j] * right[i]
        right[j] = total / matrix[j, j]
    return True


@kernel
def _objective(X, sign, rows, m, ridge, factor, w, margin):
    total = 0.0
    for i in range(m):
        margin[i] = sign[rows[i]] * _dot(X[rows[i]], w)
        total += _loss(margin[i])
    for j in range(len(w)):
        total += 0.5 * factor * ridge[j] * w[j] * w[j]
    return total


@kernel
def _newton(X, sign, rows, m, ridge, factor, start, tolerance, w, work, margin):
    """Leave the minimiser in ``w``; the norm of the gradient there, or NaN if there is none."""
    d = X.shape[1]
    hessian, gradient, step, other = work, work[d], work[d + 1], work[d + 2]
    for j in range(d):
        w[j] = start[j]
    value = _objective(X, sign, rows, m, ridge, factor, w, margin)
    for _ in range(100):
        for j in range(d):
            gradient[j] = factor * ridge[j] * w[j]
            for k in range(j):
                hessian[j, k] = 0.0
            hessian[j, j] = factor * ridge[j]
        for i in range(m):
            x, y = X[rows[i]], sign[rows[i]]
            wrong = 1.0 / (1.0 + math.exp(margin[i])) if margin[i] < 700 else 0.0
            pull, curve = -y * wrong, wrong * (1.0 - wrong)
            for j in range(d):
                gradient[j] += pull * x[j]
                scaled = curve * x[j]
                for k in range(j + 1):
                    hessian[j, k] += scaled * x[k]
        norm = math.sqrt(_dot(gradient, gradient))
        if norm <= tolerance:
            return norm
        for j in range(d):
            step[j] = gradient[j]
        if not _solve(hessian, step):
            return math.nan
        slope = _dot(gradient, step)
        length = 1.0
        lower = math.inf
        for _ in range(60):
            for j in range(d):
                other[j] = w[j] - length * step[j]
            lower = _objective(X, sign, rows, m, ridge, factor, other, margin)
            if lower <= value - 1e-4 * length * slope:
                break
            length *= 0.5
            if length * slope <= 4e-16 * (abs(value) + 1.0):
                break
        if not lower < value:  # as near as rounding allows
            for j in range(d):
                other[j] = w[j] - step[j]
            closer = _objective(X, sign, rows, m, ridge, factor, other, margin)
            if closer <= value + 1e-12 * (abs(value) + 1.0):
                for j in range(d):
                    w[j] = other[j]
            return _gradient_norm(X, sign, rows, m, ridge, factor, w, margin, gradient)
        for j in range(d):
            w[j] = other[j]
        value = lower
    return _gradient_norm(X, sign, rows, m, ridge, factor, w, margin, gradient)


@kernel
def _gradient_norm(X, sign, rows, m, ridge, factor, w, margin, gradient):
    _objective(X, sign, rows, m, ridge, factor, w, margin)
    for j in range(len(w)):
        gradient[j] = factor * ridge[j] * w[j]
    for i in range(m):
        wrong = 1.0 / (1.0 + math.exp(margin[i])) if margin[i] < 700 else 0.0
        x, pull = X[rows[i]], -sign[rows[i]] * wrong
        for j in range(len(w)):
            gradient[j] += pull * x[j]
    return math.sqrt(_dot(gradient, gradient))


@kernel
def _span(X, rows, m, d, basis, inside):
    """An orthonormal basis of these rows' first d columns (Gram and Schmidt, twice), coordinates; its dimension."""
    rank = 0
    for i in range(m):
        x = X[rows[i], :d]
        left = basis[rank]
        for j in range(d):
            left[j] = x[j]
        for j in range(m):
            inside[i, j] = 0.0
        for _ in range(2):
            for r in range(rank):
                part = _dot(left, basis[r])
                inside[i, r] += part
                for j in range(d):
                    left[j] -= part * basis[r, j]
        size = math.sqrt(_dot(left, left))
        if size > SMALL * math.sqrt(_dot(x, x)):
            for j in range(d):
                left[j] /= size
            inside[i, rank] = size
            rank += 1
    return rank


@kernel
def _in_span(X, sign, rows, m, ridge, factor, start, tolerance, w, margin):
    """The minimiser for fewer records than features: but for a free intercept, it lies in the records' span."""
    columns = X.shape[1]
    free = 1 if ridge[columns - 1] != ridge[0] else 0
    d = columns - free
    basis, inside = np.empty((m + 1, d)), np.empty((m, m))
    rank = _span(X, rows, m, d, basis, inside)
    size = max(rank + free, 1)
    here, signs, penalty = np.zeros((m, size)), np.empty(m), np.full(size, ridge[0])
    first, found = np.zeros(size), np.empty(size)
    for r in range(rank):
        first[r] = _dot(basis[r], start[:d])
    longest = 0.0
    for i in range(m):
        signs[i] = sign[rows[i]]
        longest = max(longest, _dot(X[rows[i]], X[rows[i]]))
        for r in range(rank):
            here[i, r] = inside[i, r]
        if free:
            here[i, rank] = X[rows[i], d]
    if free:
        penalty[rank], first[rank] = ridge[d], start[d]
    norm = _newton(
        here, signs, np.arange(m), m, penalty, factor, first, 0.5 * tolerance, found, np.empty((size + 3, size)), margin
    )
    for j in range(d):
        w[j] = 0.0
        for r in range(rank):
            w[j] += found[r] * basis[r, j]
    if free:
        w[d] = found[rank]
    return norm + 2 * SMALL * m * math.sqrt(longest)


@kernel
def _score(X_val, sign_val, w, kind):
    total = 0.0
    for t in range(len(sign_val)):
        z = _dot(X_val[t], w)
        if kind == ACCURACY:
            total += 1.0 if (z > 0) == (sign_val[t] > 0) else 0.0
        else:
            total -= min(_loss(sign_val[t] * z), LARGEST_LOSS)
    total /= len(sign_val)
    if kind == CLIPPED_LOG_LOSS:
        total = max(total, -math.log(2.0))
    return total


@kernel
def _utility(X, sign, rows, m, X_val, sign_val, ridge, per_record, needs_both, start, tolerance, kind, w, work, margin):
    """The score of the model of these records; NaN where there is none."""
    if m == 0:
        return math.nan
    if needs_both:
        first = sign[rows[0]]
        both = False
        for i in range(1, m):
            if sign[rows[i]] != first:
                both = True
                break
        if not both:
            return math.nan
    factor = float(m) if per_record else 1.0
    if 2 * m <= X.shape[1]:
        norm = _in_span(X, sign, rows, m, ridge, factor, start, tolerance * factor, w, margin)
    else:
        norm = _newton(X, sign, rows, m, ridge, factor, start, tolerance * factor, w, work, margin)
    # Not solved, which a well-posed problem always is. Where stability is promised, so is the tolerance.
    if not norm <= (tolerance if per_record else max(1e3 * tolerance, 1e-6)) * m:
        return math.nan
    return _score(X_val, sign_val, w, kind)


@kernel
def logistic_fit(X, sign, rows, ridge, per_record, start, tolerance, w):
    """The minimiser over these records, into ``w``; returns the norm of the gradient of the mean objective."""
    m, d = len(rows), X.shape[1]
    factor = float(m) if per_record else 1.0
    norm = _newton(X, sign, rows, m, ridge, factor, start, tolerance * factor, w, np.empty((d + 3, d)), np.empty(m))
    return norm / m


@kernel
def logistic_utilities(
    members, order, mode, owner, X, sign, X_val, sign_val, ridge, per_record, needs_both, start, tolerance, kind,
    full, empty, truncation, out,
):  # fmt: skip
    """Utilities of coalitions; ``owner`` is the player of each record. How many there are.

    SETS: one coalition a row of ``members``. CHAIN: the players of ``order`` join its first row one after the other,
    until the utility is within ``truncation`` of ``full``. JOINED: each of them joins it alone.
    """
    n, d = X.shape
    rows, w, work, margin = np.empty(n, np.int64), np.empty(d), np.empty((d + 3, d)), np.empty(n)
    present = members[0].copy()
    for at in range(len(out)):
        if mode == SETS:
            for j in range(len(present)):
                present[j] = members[at, j]
        else:
            present[order[at]] = True
        m = 0
        for r in range(n):
            if present[owner[r]]:
                rows[m] = r
                m += 1
        out[at] = _utility(
            X, sign, rows, m, X_val, sign_val, ridge, per_record, needs_both, start, tolerance, kind, w, work, margin
        )
        if mode == JOINED:
            present[order[at]] = False
        elif mode == CHAIN and abs(full - (empty if math.isnan(out[at]) else out[at])) <= truncation:
            return at + 1
    return len(out)
