"""Rotations in three dimensions and between them, under SciPy's names (`jitcore.scipy.spatial.transform`).

In: quaternions, matrices, rotation vectors, Euler angles. Out: `Rotation`s, which are pytrees, and their
other forms. Derivatives of all forms but Euler angles in gimbal lock are finite, those at the identity too.
Source: scipy.spatial.transform, of which what JAX has.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jitcore import dtypes, numpy as jnp
from jitcore.array import Array
from jitcore.random import normal
from jitcore.tree_util import register_dataclass

__all__ = ["Rotation", "Slerp"]

_SMALL = 1e-6  # squares of angles below which a series of three terms is exact in float64
_LOCK = 1e-7  # of the middle Euler angle from where the other two are not told apart


@register_dataclass
@dataclass(frozen=True, eq=False)
class Rotation:
    """Rotations as unit quaternions: one, or an array of them.

    Args:
        quat: [4] or [N, 4], x, y, z, w; `from_quat` takes those that have another norm.

    Example: `Rotation.from_euler("z", 90, degrees=True).apply(jnp.array([1., 0., 0.]))` is about [0, 1, 0].
    Source: scipy.spatial.transform.Rotation."""

    quat: Array

    # -- from other forms -------------------------------------------------------------------------------
    @classmethod
    def from_quat(cls, quat) -> Rotation:
        """Of quaternions x, y, z, w of any norm but 0."""
        quat = _take(quat)
        return cls(quat / _norm(quat)[..., None])

    @classmethod
    def from_matrix(cls, matrix) -> Rotation:
        """Of orthogonal matrices [..., 3, 3] with determinant 1, which is not checked."""
        m = _take(matrix)
        if m.shape[-2:] != (3, 3):
            raise ValueError(f"Rotation.from_matrix needs matrices [..., 3, 3], got shape {m.shape}")
        diagonal = [m[..., i, i] for i in range(3)]
        trace = diagonal[0] + diagonal[1] + diagonal[2]
        found: list[Any] = []
        for i in range(3):  # four times a quaternion times its part i, for the largest part that there is
            j, k = (i + 1) % 3, (i + 2) % 3
            parts: list[Any] = [None] * 4
            parts[i] = 1 - trace + 2 * diagonal[i]
            parts[j] = m[..., j, i] + m[..., i, j]
            parts[k] = m[..., k, i] + m[..., i, k]
            parts[3] = m[..., k, j] - m[..., j, k]
            found.append(jnp.stack(parts, -1))
        last = [m[..., 2, 1] - m[..., 1, 2], m[..., 0, 2] - m[..., 2, 0], m[..., 1, 0] - m[..., 0, 1],
                1 + trace]
        choice = jnp.argmax(jnp.stack([*diagonal, trace], -1), -1)[..., None]
        quat = jnp.stack(last, -1)
        for i in range(3):
            quat = jnp.where(choice == i, found[i], quat)
        return cls.from_quat(quat)

    @classmethod
    def from_rotvec(cls, rotvec, degrees: bool = False) -> Rotation:
        """Of vectors along the axis whose length is the angle."""
        rotvec = _in_radians(rotvec, degrees)
        square = jnp.sum(rotvec * rotvec, -1, keepdims=True)
        is_small = square <= _SMALL
        angle = jnp.sqrt(jnp.where(is_small, 1, square))
        scale = jnp.where(is_small, 0.5 - square / 48 + square * square / 3840, jnp.sin(angle / 2) / angle)
        real = jnp.where(is_small, 1 - square / 8 + square * square / 384, jnp.cos(angle / 2))
        return cls(jnp.concatenate([scale * rotvec, real], -1))

    @classmethod
    def from_mrp(cls, mrp) -> Rotation:
        """Of modified Rodrigues parameters, the axis times tan(angle / 4)."""
        mrp = _take(mrp)
        more = 1 + jnp.sum(mrp * mrp, -1, keepdims=True)
        return cls(jnp.concatenate([2 * mrp, 2 - more], -1) / more)

    @classmethod
    def from_euler(cls, seq: str, angles, degrees: bool = False) -> Rotation:
        """Of Euler angles.

        Args:
            seq: one to three axes: of "xyz" if they stay, of "XYZ" if they turn along.
            angles: [len(seq)] or [N, len(seq)]; for one axis a number, too.
        Raises: ValueError for other axes, and for angles that do not fit."""
        axes, turns = _read_axes(seq, (1, 2, 3))
        angles = _in_radians(angles, degrees)
        if len(axes) == 1:
            angles = jnp.atleast_1d(angles)
        if angles.shape[-1:] != (len(axes),):
            raise ValueError(f"Expected `angles` to have {len(axes)} columns for {seq!r}, got shape "
                             f"{angles.shape}")
        quat = None
        for n, axis in enumerate(axes):
            half = angles[..., n] / 2
            parts = [jnp.zeros_like(half)] * 3 + [jnp.cos(half)]
            parts[axis] = jnp.sin(half)
            turn = jnp.stack(parts, -1)
            quat = turn if quat is None else _compose(quat, turn) if turns else _compose(turn, quat)
        return cls(quat)

    @classmethod
    def identity(cls, num: int | None = None, dtype: Any = float) -> Rotation:
        """The rotation by 0; `num` of them."""
        one = jnp.array([0, 0, 0, 1], dtype)
        return cls(one if num is None else jnp.tile(one, (num, 1)))

    @classmethod
    def random(cls, random_key: Array, num: int | None = None) -> Rotation:
        """A rotation, or `num` of them, each as likely as any other."""
        return cls.from_quat(normal(random_key, (4,) if num is None else (num, 4)))

    @classmethod
    def concatenate(cls, rotations: Sequence[Rotation]) -> Rotation:
        """All rotations of these, which are no single ones, as one array of rotations."""
        return cls(jnp.concatenate([rotation.quat for rotation in rotations]))

    # -- as other forms ---------------------------------------------------------------------------------
    def as_quat(self, canonical: bool = False, scalar_first: bool = False) -> Array:
        """Quaternions x, y, z, w, or w, x, y, z; canonical: of each and its negative the one whose w, or, if
        it is 0, whose first of x, y and z that is not, is positive."""
        quat = self.quat
        if canonical:
            sign = jnp.sign(quat)
            first = sign[..., 3]
            for n in range(3):
                first = jnp.where(first == 0, sign[..., n], first)
            quat = jnp.where(first[..., None] < 0, -quat, quat)
        return jnp.roll(quat, 1, -1) if scalar_first else quat

    def as_matrix(self) -> Array:
        """Matrices, [..., 3, 3]."""
        x, y, z, w = _parts(self.quat)
        rows = [[x * x - y * y - z * z + w * w, 2 * (x * y - z * w), 2 * (x * z + y * w)],
                [2 * (x * y + z * w), y * y - x * x - z * z + w * w, 2 * (y * z - x * w)],
                [2 * (x * z - y * w), 2 * (y * z + x * w), z * z - x * x - y * y + w * w]]
        return jnp.stack([jnp.stack(row, -1) for row in rows], -2)

    def as_rotvec(self, degrees: bool = False) -> Array:
        """Vectors along the axis whose length is the angle, at most pi."""
        quat = _with_positive_real(self.quat)
        axis, real = quat[..., :3], quat[..., 3:]
        square = jnp.sum(axis * axis, -1, keepdims=True)
        is_small = square <= _SMALL
        sine = jnp.sqrt(jnp.where(is_small, 1, square))
        scale = jnp.where(is_small, 2 + square / 3 + 3 * square * square / 20,
                          2 * jnp.arctan2(sine, real) / sine)
        return _in_unit(scale * axis, degrees)

    def as_mrp(self) -> Array:
        """Modified Rodrigues parameters, of length at most 1."""
        quat = _with_positive_real(self.quat)
        return quat[..., :3] / (1 + quat[..., 3:])

    def as_euler(self, seq: str, degrees: bool = False) -> Array:
        """Euler angles about three axes: see `from_euler`. In gimbal lock the third one is 0.

        Raises: ValueError for other axes."""
        (i, j, k), turns = _read_axes(seq, (3,))
        if turns:
            i, k = k, i
        symmetric = i == k
        k = 3 - i - j if symmetric else k
        sign = (i - j) * (j - k) * (k - i) // 2
        q = _parts(self.quat)
        if symmetric:
            a, b, c, d = q[3], q[i], q[j], q[k] * sign
        else:
            a, b, c, d = q[3] - q[j], q[i] + q[k] * sign, q[j] + q[3], q[k] * sign - q[i]
        middle = 2 * jnp.arctan2(jnp.hypot(c, d), jnp.hypot(a, b))
        half_sum, half_difference = jnp.arctan2(b, a), jnp.arctan2(d, c)
        at_zero, at_pi = jnp.abs(middle) <= _LOCK, jnp.abs(middle - np.pi) <= _LOCK
        outer = half_sum - half_difference, half_sum + half_difference
        first, third = outer[::-1] if turns else outer
        locked = jnp.where(at_zero, 2 * half_sum, 2 * half_difference * (1 if turns else -1))
        first = jnp.where(at_zero | at_pi, locked, first)
        third = jnp.where(at_zero | at_pi, 0, third)
        if not symmetric:
            middle = middle - np.pi / 2
            first, third = (first * sign, third) if turns else (first, third * sign)
        angles = jnp.stack([first, middle, third], -1)
        angles = jnp.where(angles < -np.pi, angles + 2 * np.pi, angles)
        angles = jnp.where(angles > np.pi, angles - 2 * np.pi, angles)
        return _in_unit(angles, degrees)

    # -- what rotations do ------------------------------------------------------------------------------
    def apply(self, vectors, inverse: bool = False) -> Array:
        """Vectors [3] or [N, 3], turned, or turned back."""
        matrix = self.as_matrix()
        matrix = jnp.swapaxes(matrix, -1, -2) if inverse else matrix
        return jnp.matmul(matrix, _take(vectors)[..., None])[..., 0]

    def __mul__(self, other: Rotation) -> Rotation:
        """The rotation by the other one and then by this one."""
        return Rotation.from_quat(_compose(self.quat, other.quat))

    def inv(self) -> Rotation:
        """The rotation back."""
        return Rotation(self.quat * np.array([-1, -1, -1, 1], self.quat.dtype))

    def magnitude(self) -> Array:
        """The angles, from 0 to pi."""
        return 2 * jnp.arctan2(_norm(self.quat[..., :3]), jnp.abs(self.quat[..., 3]))

    def mean(self, weights=None) -> Rotation:
        """The rotation whose squared chordal distances from these, times weights [N], are least in sum.

        Raises: ValueError for weights of another shape."""
        count, dtype = len(self), self.quat.dtype
        weights = jnp.ones(count, dtype) if weights is None else jnp.asarray(weights, dtype)
        if weights.shape != (count,):
            raise ValueError(f"Expected `weights` of shape ({count},), got {weights.shape}")
        _, vectors = jnp.linalg.eigh((weights * self.quat.T) @ self.quat)
        return Rotation(vectors[:, -1])

    @property
    def single(self) -> bool:
        """Whether it is one rotation, not an array of them."""
        return self.quat.ndim == 1

    def __len__(self) -> int:
        if self.single:
            raise TypeError("Single rotation has no len().")
        return self.quat.shape[0]

    def __getitem__(self, indexer) -> Rotation:
        if self.single:
            raise TypeError("Single rotation is not subscriptable.")
        return Rotation(self.quat[indexer])


@register_dataclass
@dataclass(frozen=True, eq=False)
class Slerp:
    """Rotations between rotations at given times, at constant angular velocity: made by `Slerp.init`.

    Example: `Slerp.init([0, 1], rotations)(0.5)` is half way from the first rotation to the second.
    Source: scipy.spatial.transform.Slerp."""

    times: Array
    timedelta: Array
    rotations: Rotation
    rotvecs: Array

    @classmethod
    def init(cls, times, rotations: Rotation) -> Slerp:
        """
        Args:
            times: [N], which rise. rotations: N of them, at least 2.
        Raises: TypeError for what are no rotations, ValueError for another number of them."""
        if not isinstance(rotations, Rotation):
            raise TypeError("`rotations` must be a `Rotation` instance.")
        if rotations.single or len(rotations) == 1:
            raise ValueError("`rotations` must be a sequence of at least 2 rotations.")
        times = jnp.asarray(times, rotations.quat.dtype)
        if times.shape != (len(rotations),):
            raise ValueError(f"Expected `times` of shape ({len(rotations)},), got {times.shape}")
        starts = rotations[:-1]
        return cls(times, jnp.diff(times), starts, (starts.inv() * rotations[1:]).as_rotvec())

    def __call__(self, times) -> Rotation:
        """Rotations at times, a number or [M]; beyond the given ones the first and last motion go on.

        Raises: ValueError for more axes."""
        times = jnp.asarray(times, self.times.dtype)
        if times.ndim > 1:
            raise ValueError("`times` must be at most 1-dimensional.")
        which = jnp.clip(jnp.searchsorted(self.times, times) - 1, 0, self.timedelta.shape[0] - 1)
        share = (times - self.times[which]) / self.timedelta[which]
        return self.rotations[which] * Rotation.from_rotvec(self.rotvecs[which] * share[..., None])


# -- parts ----------------------------------------------------------------------------------------------
def _take(x) -> Array:
    x = jnp.asarray(x)
    return jnp.asarray(x, dtypes.inexact_dtype(x.dtype))


def _in_radians(x, degrees: bool) -> Array:
    return jnp.deg2rad(_take(x)) if degrees else _take(x)


def _in_unit(x: Array, degrees: bool) -> Array:
    return jnp.rad2deg(x) if degrees else x


def _parts(x: Array) -> list[Array]:
    return [x[..., n] for n in range(x.shape[-1])]


def _norm(x: Array) -> Array:
    """Its derivative at 0 is 0."""
    square = jnp.sum(x * x, -1)
    return jnp.where(square == 0, 0, jnp.sqrt(jnp.where(square == 0, 1, square)))


def _with_positive_real(quat: Array) -> Array:
    return jnp.where(quat[..., 3:] < 0, -quat, quat)


def _compose(p: Array, q: Array) -> Array:
    """The product of quaternions."""
    (a, b, c, w), (x, y, z, v) = _parts(p), _parts(q)
    return jnp.stack([w * x + v * a + b * z - c * y, w * y + v * b + c * x - a * z,
                      w * z + v * c + a * y - b * x, w * v - a * x - b * y - c * z], -1)


def _read_axes(seq: str, lengths: tuple[int, ...]) -> tuple[list[int], bool]:
    """Numbers of axes, and whether they turn along."""
    if len(seq) not in lengths or not re.fullmatch("[xyz]+|[XYZ]+", seq):
        count = " or ".join(map(str, lengths))
        raise ValueError(f"Expected {count} axes from 'xyz' or from 'XYZ', got {seq!r}")
    if any(one == other for one, other in zip(seq, seq[1:])):
        raise ValueError(f"Expected consecutive axes to be different, got {seq}")
    return ["xyz".index(axis) for axis in seq.lower()], seq.isupper()
