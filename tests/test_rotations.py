"""`jitcore.scipy.spatial.transform` against SciPy in float64, with derivatives and batches."""

import itertools

import numpy as np
import pytest
from scipy.spatial.transform import Rotation as SciPyRotation, Slerp as SciPySlerp

import jitcore
import jitcore.numpy as jnp
from jitcore import grad, jacfwd, jacrev, jit, random, tree_util, vmap
from jitcore.scipy.spatial.transform import Rotation, Slerp

RANDOM = np.random.default_rng(5)
QUATS = RANDOM.normal(size=(12, 4))
VECTORS = RANDOM.normal(size=(12, 3))
EXPECTED = SciPyRotation.from_quat(QUATS)
SEQUENCES = ["".join(seq) for seq in itertools.product("xyz", repeat=3) if seq[0] != seq[1] != seq[2]]
SEQUENCES += [seq.upper() for seq in SEQUENCES]


def assert_same_rotations(found, expected, atol=2e-14):
    """Up to the sign of quaternions."""
    found, expected = np.asarray(found.quat), expected.as_quat()
    assert found.shape == expected.shape and found.dtype == np.float64
    sign = np.sign(np.sum(found * expected, -1, keepdims=True))
    np.testing.assert_allclose(found * sign, expected, atol=atol)


@pytest.fixture(params=["jit", "eager"])
def wrap(request):
    return jit if request.param == "jit" else lambda fun: fun


@pytest.mark.parametrize("n", [0, slice(None)], ids=["one", "many"])
def test_other_forms(n, wrap):
    rotation, expected = Rotation.from_quat(QUATS[n]), EXPECTED[n]
    for name in ("as_matrix", "as_rotvec", "as_mrp", "magnitude"):
        found = wrap(lambda r, name=name: getattr(r, name)())(rotation)
        np.testing.assert_allclose(found, getattr(expected, name)(), atol=2e-14)
    np.testing.assert_allclose(rotation.as_rotvec(degrees=True), expected.as_rotvec(degrees=True), atol=1e-12)
    np.testing.assert_allclose(rotation.as_quat(canonical=True), expected.as_quat(canonical=True), atol=1e-15)
    np.testing.assert_array_equal(rotation.as_quat(scalar_first=True)[..., 1:], rotation.quat[..., :3])
    assert rotation.single == expected.single


def test_signs_of_canonical_quaternions():
    quats = np.array([[0, 0, 0, -1.0], [0, 0, -1, 0], [0, -1, 0, 0], [-1, 0, 0, 0], [0, -0.6, 0.8, 0], [0.6, -0.8, 0, 0]])
    np.testing.assert_array_equal(Rotation(jnp.asarray(quats)).as_quat(canonical=True),
                                  SciPyRotation.from_quat(quats).as_quat(canonical=True))


@pytest.mark.parametrize("name, values", [
    ("matrix", EXPECTED.as_matrix()), ("rotvec", EXPECTED.as_rotvec()), ("rotvec", 1e-4 * VECTORS), ("rotvec", 9 * VECTORS),
    ("mrp", EXPECTED.as_mrp()), ("mrp", 3 * VECTORS), ("quat", QUATS)])
def test_made_from(name, values, wrap):
    ours, theirs = getattr(Rotation, f"from_{name}"), getattr(SciPyRotation, f"from_{name}")
    assert_same_rotations(wrap(ours)(values), theirs(values))
    assert_same_rotations(wrap(ours)(values[0]), theirs(values[0]))


def test_matrices_of_half_turns():
    matrices = np.stack([np.diag(d) for d in ([1.0, -1, -1], [-1, 1, -1], [-1, -1, 1], [1, 1, 1])])
    assert_same_rotations(Rotation.from_matrix(matrices), SciPyRotation.from_matrix(matrices))


@pytest.mark.parametrize("seq", SEQUENCES)
def test_euler_angles(seq):
    angles = RANDOM.uniform(-170, 170, (8, 3))
    rotation, expected = Rotation.from_euler(seq, angles, degrees=True), SciPyRotation.from_euler(seq, angles, degrees=True)
    assert_same_rotations(rotation, expected)
    np.testing.assert_allclose(rotation.as_euler(seq, degrees=True), expected.as_euler(seq, degrees=True), atol=1e-9)
    for middle in (0, 90, -90, 180):  # gimbal lock among them
        locked = np.array([30.0, middle, 50])
        rotation = Rotation.from_euler(seq, locked, degrees=True)
        assert_same_rotations(Rotation.from_euler(seq, rotation.as_euler(seq)), SciPyRotation.from_quat(rotation.quat), 2e-7)


@pytest.mark.filterwarnings("ignore:Gimbal")
@pytest.mark.parametrize("seq", ["zyx", "XYX", "ZYX"])
def test_gimbal_lock(seq):
    quat = SciPyRotation.from_euler(seq, [0.4, 0 if seq[0] == seq[2] else np.pi / 2, 0.3]).as_quat()
    np.testing.assert_allclose(Rotation(jnp.asarray(quat)).as_euler(seq), SciPyRotation.from_quat(quat).as_euler(seq), atol=1e-7)


@pytest.mark.parametrize("seq, angles", [("z", 0.3), ("Y", [[0.3], [0.4]]), ("xz", [0.3, 0.4]), ("XZ", [[0.3, 0.4]])])
def test_fewer_angles(seq, angles):
    assert_same_rotations(Rotation.from_euler(seq, np.asarray(angles)), SciPyRotation.from_euler(seq, angles))


def test_composition():
    other = SciPyRotation.from_quat(QUATS[::-1])
    ours, theirs = Rotation.from_quat(QUATS), Rotation.from_quat(QUATS[::-1])
    assert_same_rotations(ours * theirs, EXPECTED * other)
    assert_same_rotations(ours[3] * theirs, EXPECTED[3] * other)
    assert_same_rotations(ours.inv(), EXPECTED.inv())
    assert_same_rotations(ours[2:5], EXPECTED[2:5])
    assert_same_rotations(Rotation.concatenate([ours, theirs]), SciPyRotation.concatenate([EXPECTED, other]))
    assert len(ours) == 12
    for weights in (None, np.arange(1.0, 13)):
        mean = ours.mean(weights)
        assert_same_rotations(mean, EXPECTED.mean(weights))


@pytest.mark.parametrize("inverse", [False, True])
def test_vectors_are_turned(inverse, wrap):
    for n, m in itertools.product([0, slice(None)], repeat=2):
        found = wrap(lambda r, v: r.apply(v, inverse))(Rotation.from_quat(QUATS[n]), VECTORS[m])
        np.testing.assert_allclose(found, EXPECTED[n].apply(VECTORS[m], inverse), atol=1e-14)


def test_identity_and_random():
    assert Rotation.identity().quat.dtype == np.float32
    np.testing.assert_array_equal(Rotation.identity(2, np.float64).as_matrix(), [np.eye(3)] * 2)
    some = Rotation.random(random.key(0), 4000)
    np.testing.assert_allclose(jnp.linalg.norm(some.quat, axis=-1), 1, rtol=1e-6)
    np.testing.assert_allclose(jnp.mean(some.as_matrix(), 0), 0, atol=0.05)
    assert Rotation.random(random.key(0)).single


def test_one_angle_of_one_axis():
    assert Rotation.from_euler("z", np.array([0.3])).single
    with pytest.raises(ValueError, match="columns"):
        Rotation.from_euler("z", np.zeros(2))


def test_refusals():
    for seq in ("", "xyzx", "xY", "ab", "xxy"):
        with pytest.raises(ValueError, match="axes"):
            Rotation.from_euler(seq, np.zeros(3))
    with pytest.raises(ValueError, match="axes"):
        Rotation.identity().as_euler("xy")
    with pytest.raises(ValueError, match="columns"):
        Rotation.from_euler("xyz", np.zeros(2))
    with pytest.raises(TypeError, match="no len"):
        len(Rotation.identity())
    with pytest.raises(TypeError, match="subscriptable"):
        Rotation.identity()[0]
    with pytest.raises(ValueError, match="weights"):
        Rotation.identity(3).mean(np.ones(2))
    with pytest.raises(TypeError, match="Rotation"):
        Slerp.init([0, 1], QUATS)
    with pytest.raises(ValueError, match="at least 2"):
        Slerp.init([0], Rotation.identity())
    with pytest.raises(ValueError, match="times"):
        Slerp.init([0, 1, 2], Rotation.identity(2))


def test_interpolation(wrap):
    times = np.array([0.0, 1, 3, 4])
    ours, theirs = Slerp.init(times, Rotation.from_quat(QUATS[:4])), SciPySlerp(times, EXPECTED[:4])
    at = np.array([0, 0.2, 1, 2.5, 3, 3.7, 4])
    assert_same_rotations(wrap(lambda s, t: s(t))(ours, at), theirs(at))
    assert_same_rotations(wrap(lambda s, t: s(t))(ours, np.float64(2.5)), theirs(2.5))


def test_they_are_pytrees():
    rotation = Rotation.from_quat(QUATS)
    (leaf,) = tree_util.tree_leaves(rotation)
    assert leaf is rotation.quat
    assert isinstance(jit(lambda r: r.inv())(rotation), Rotation)
    slerp = Slerp.init(np.arange(12.0), rotation)
    assert isinstance(tree_util.tree_map(lambda x: x, slerp).rotations, Rotation)


def test_batches():
    found = vmap(lambda quat, vector: Rotation.from_quat(quat).apply(vector))(QUATS, VECTORS)
    np.testing.assert_allclose(found, EXPECTED.apply(VECTORS), atol=1e-14)
    found = jit(vmap(lambda vector: Rotation.from_rotvec(vector).as_euler("zyx")))(VECTORS)
    np.testing.assert_allclose(found, SciPyRotation.from_rotvec(VECTORS).as_euler("zyx"), atol=1e-13)


FUNCTIONS = [lambda v: Rotation.from_rotvec(v).as_matrix(), lambda v: Rotation.from_rotvec(v).as_rotvec(),
             lambda v: Rotation.from_mrp(v).as_rotvec(), lambda v: Rotation.from_euler("zyx", v).as_mrp(),
             lambda v: Rotation.from_matrix(Rotation.from_rotvec(v).as_matrix()).apply(v + 1.0)]


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("place", [np.array([0.3, -0.5, 0.7]), np.zeros(3), np.full(3, 1e-5)], ids=["far", "identity", "near"])
def test_derivatives(function, place):
    forward = jacfwd(function)(place)
    steps = [(np.asarray(function(place + h)) - np.asarray(function(place - h))) / 2e-6 for h in 1e-6 * np.eye(3)]
    np.testing.assert_allclose(forward, np.stack(steps, -1), atol=1e-8)
    np.testing.assert_allclose(jit(jacrev(function))(place), forward, atol=1e-13)


def test_derivatives_of_interpolation():
    rotation = Rotation.from_quat(QUATS[:3])
    angle = lambda t: Slerp.init(np.array([0.0, 1, 2]), rotation)(t).apply(np.ones(3))[0]  # noqa: E731
    slope = grad(angle)(np.float64(0.4))
    np.testing.assert_allclose(slope, (angle(np.float64(0.4 + 1e-6)) - angle(np.float64(0.4 - 1e-6))) / 2e-6, rtol=1e-7)
    assert jitcore.grad(lambda v: Rotation.from_rotvec(v).magnitude())(np.zeros(3)).tolist() == [0, 0, 0]
