"""`shard_map`: a function of the parts of arrays, run on all devices of a mesh at once.

In: a function, a mesh, and specs that say how arguments and results are cut. Out: a function of whole arrays.
Inside, an array is the part that the device has, and the axes of the mesh have names for collectives.

Each value inside knows along which axes it varies from device to device (`ShapedArray.varying`): arguments
along those that cut them, results along those of their operands. Where values meet that do not vary alike,
`pvary` marks those that are the same on more devices; its transpose is the sum over devices. A result must be
the same along axes that do not cut it. `check_vma=False` leaves that out: then nothing is marked, and the
transpose of a sum is a sum.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

import numpy as np

from jitcore.core.jaxpr import ClosedJaxpr, ShapedArray, aval_of, eval_jaxpr
from jitcore.core.source import api_boundary, locate_function
from jitcore.core.trace import Tracer, close_over_consts, trace_to_jaxpr
from jitcore.lax.control_flow import control
from jitcore.lax.define import define
from jitcore.lax.elementwise import div
from jitcore.lax.parallel.collectives import psum, psum_invariant, pvary
from jitcore.lax.parallel.partitioning import add_axis_to_spec
from jitcore.lax.shape import expand_dims, squeeze
from jitcore.sharding import NamedSharding
from jitcore.sharding.mesh import Mesh, PartitionSpec, get_mesh, list_names
from jitcore.transforms.batching import MeshAxis, Unmapped, batch_jaxpr, name_axes
from jitcore.transforms.jvp import jvp_jaxpr, split_outputs
from jitcore.transforms.partial_eval import split_jaxpr
from jitcore.transforms.tangents import is_zero
from jitcore.transforms.transpose import is_linear, transpose_jaxpr
from jitcore.tree_util import flatten_axes, tree_flatten, tree_leaves_with_path
from jitcore.tree_util.nodes import keystr

Specs = tuple[PartitionSpec, ...]


class Frame(NamedTuple):
    """What the body of a `shard_map` runs in. axes: the names along which arrays are cut by hand; is_checked:
    whether values know along which of them they vary."""

    mesh: Mesh
    axes: tuple
    is_checked: bool

    def enter(self) -> AbstractContextManager:
        sizes = self.mesh.shape
        return name_axes([MeshAxis(sizes[name], name, self.is_checked) for name in self.axes])

    def names_of(self, spec: PartitionSpec) -> list:
        """The axes that a spec cuts along, those of one device left out."""
        return [name for names in list_names(spec) for name in names if self.mesh.shape[name] > 1]

    def names_besides(self, spec: PartitionSpec) -> tuple:
        cut = self.names_of(spec)
        return tuple(name for name in self.axes if self.mesh.shape[name] > 1 and name not in cut)

    def count_parts(self, spec: PartitionSpec, ndim: int) -> list[int]:
        counts = [int(np.prod([self.mesh.shape[name] for name in names], dtype=int))
                  for names in list_names(spec)]
        return counts + [1] * (ndim - len(counts))

    def cut(self, aval: ShapedArray, spec: PartitionSpec) -> ShapedArray:
        """The type of a part."""
        shape = tuple(extent // count for extent, count in zip(aval.shape, self.count_parts(spec, aval.ndim)))
        varying = aval.varying | frozenset(self.names_of(spec)) if self.is_checked else aval.varying
        return aval.update(shape=shape, varying=varying)

    def join(self, aval: ShapedArray, spec: PartitionSpec) -> ShapedArray:
        """The type of the whole."""
        shape = tuple(extent * count for extent, count in zip(aval.shape, self.count_parts(spec, aval.ndim)))
        return aval.update(shape=shape, varying=aval.varying - frozenset(self.axes))

    def trace(self, run: Callable, avals: Sequence[ShapedArray], info=None) -> ClosedJaxpr:
        """A function of parts, which closes over nothing."""
        with self.enter():
            jaxpr, consts = trace_to_jaxpr(run, avals, info)
        return ClosedJaxpr(jaxpr, consts)


# -- the primitive ------------------------------------------------------------------------------------------
def _infer_avals(*avals, jaxpr, frame, in_specs, out_specs):
    return [frame.join(aval, spec) for aval, spec in zip(jaxpr.out_avals, out_specs)]


def _batch(primitive, axis, values, batched, *, jaxpr, frame, in_specs, out_specs):
    with frame.enter():
        jaxpr, out_batched = batch_jaxpr(jaxpr, axis, batched)
    in_specs, out_specs = (tuple(add_axis_to_spec(spec) if flag else spec for spec, flag in zip(specs, flags))
                           for specs, flags in ((in_specs, batched), (out_specs, out_batched)))
    outs = primitive.bind(*values, jaxpr=jaxpr, frame=frame, in_specs=in_specs, out_specs=out_specs)
    return [out if flag else Unmapped(out) for out, flag in zip(outs, out_batched)]


def _jvp(primitive, primals, tangents, *, jaxpr, frame, in_specs, out_specs):
    nonzero = [not is_zero(t) for t in tangents]
    with frame.enter():
        derivative, out_nonzero = jvp_jaxpr(jaxpr, nonzero)
    in_specs, out_specs = (specs + _choose(specs, flags)
                           for specs, flags in ((in_specs, nonzero), (out_specs, out_nonzero)))
    given = [t for t in tangents if not is_zero(t)]
    outs = primitive.bind(*primals, *given, jaxpr=derivative, frame=frame, in_specs=in_specs,
                          out_specs=out_specs)
    return split_outputs(outs, out_nonzero)


def _choose(specs: Specs, flags: Sequence[bool]) -> Specs:
    return tuple(spec for spec, flag in zip(specs, flags) if flag)


def _split(trace, primitive, args, *, jaxpr, frame, in_specs, out_specs):
    """What the known part hands over is stacked along a new first axis, over the devices among which it
    varies."""
    unknown = list(map(trace.is_unknown, args))
    with frame.enter():
        split = split_jaxpr(jaxpr, unknown)
    n_outs = split.num_known_outs
    axes = [
        tuple(name for name in frame.axes if name in aval.varying)
        if frame.is_checked
        else frame.names_besides(PartitionSpec())
        for aval in split.known.out_avals[n_outs:]]
    specs = [PartitionSpec(names) if names else PartitionSpec() for names in axes]

    def run_known(*values):
        outs = eval_jaxpr(split.known.jaxpr, split.known.consts, values)
        stacked = [expand_dims(out, (0,)) if names else out for out, names in zip(outs[n_outs:], axes)]
        return [*outs[:n_outs], *stacked]

    in_specs_known = _choose(in_specs, [not flag for flag in unknown])
    out_specs_known = _choose(out_specs, [not flag for flag in split.out_unknown]) + tuple(specs)
    known_jaxpr = frame.trace(run_known, split.known.in_avals, jaxpr.jaxpr.debug_info)
    known = [x for x in args if not trace.is_unknown(x)]
    known_outs = primitive.bind(*known, jaxpr=known_jaxpr, frame=frame, in_specs=in_specs_known,
                                out_specs=out_specs_known)

    computed = iter(zip(specs, axes))
    handed = [next(computed) if place is None else (in_specs_known[place], ()) for place in split.residuals]
    avals = [aval.update(shape=(1, *aval.shape)) if names else aval
             for aval, (_, names) in zip(split.unknown.in_avals, handed)]

    def run_unknown(*values):
        residuals = [squeeze(x, (0,)) if names else x for x, (_, names) in zip(values, handed)]
        return eval_jaxpr(split.unknown.jaxpr, split.unknown.consts, [*residuals, *values[len(handed) :]])

    unknown_jaxpr = frame.trace(run_unknown, [*avals, *split.unknown.in_avals[len(handed) :]],
                                jaxpr.jaxpr.debug_info)
    operands = [*split.join_residuals(known, known_outs), *[x for x in args if trace.is_unknown(x)]]
    outs = trace.record_unknown(
        primitive,
        operands,
        {
            "jaxpr": unknown_jaxpr,
            "frame": frame,
            "in_specs": tuple(spec for spec, _ in handed) + _choose(in_specs, unknown),
            "out_specs": _choose(out_specs, split.out_unknown),
        })
    return split.merge_outputs(known_outs, outs)


def _transpose(primitive, cotangents, operands, *, jaxpr, frame, in_specs, out_specs):
    in_linear = list(map(is_linear, operands))
    given = [not is_zero(ct) for ct in cotangents]
    with frame.enter():
        transposed, nonzero = transpose_jaxpr(jaxpr, in_linear, given)
    value_specs, ct_specs = _choose(in_specs, [not flag for flag in in_linear]), _choose(out_specs, given)
    result_specs = _choose(_choose(in_specs, in_linear), nonzero)
    n_values = len(value_specs)

    def share(ct, spec):
        """The part of a cotangent that is the same on several devices, each of which gives it back."""
        count = int(np.prod([frame.mesh.shape[name] for name in frame.names_besides(spec)], dtype=int))
        return (
            ct if frame.is_checked or count == 1 else div(ct, np.asarray(count).astype(aval_of(ct).dtype)[()])
        )

    def add_up(ct, spec):
        """The cotangent of what is the same on several devices is the sum of theirs."""
        rest = frame.names_besides(spec)
        if not frame.is_checked:
            return psum.primitive.bind(ct, axes=rest) if rest else ct
        rest = tuple(name for name in rest if name in aval_of(ct).varying)
        return psum_invariant.bind(ct, axes=rest) if rest else ct

    def run(*values):
        cts = [share(ct, spec) for ct, spec in zip(values[n_values:], ct_specs)]
        outs = eval_jaxpr(transposed.jaxpr, transposed.consts, [*values[:n_values], *cts])
        return [add_up(out, spec) for out, spec in zip(outs, result_specs)]

    values = [x for x in operands if not is_linear(x)]
    outs = iter(
        primitive.bind(
            *values,
            *[ct for ct in cotangents if not is_zero(ct)],
            frame=frame,
            jaxpr=frame.trace(run, transposed.in_avals, jaxpr.jaxpr.debug_info),
            in_specs=value_specs + ct_specs,
            out_specs=result_specs))
    found = iter([next(outs) if flag else None for flag in nonzero])
    return [next(found) if flag else None for flag in in_linear]


def _refuse(*values, **_):
    raise NotImplementedError("shard_map on several devices needs backend='xla'")


def _inline(params, operands):
    return (params["jaxpr"], operands) if params["frame"].mesh.size == 1 else None


@define("shard_map", impl=_refuse, aval=_infer_avals, jvp=_jvp, transpose=_transpose, partial=_split,
        batch=_batch, multiple_results=True, effects=lambda *, jaxpr, **_: jaxpr.effects, inline=_inline,
        mesh=lambda *, frame, **_: NamedSharding(frame.mesh, PartitionSpec()))
@api_boundary
def shard_map(f: Callable | None = None, mesh: Mesh | None = None, in_specs: Any = None,
              out_specs: Any = None, check_vma: bool = True, *, axis_names: Any = None,
              check_rep: bool | None = None, auto: Any = frozenset()) -> Any:
    """A function of whole arrays that runs `f` on their parts, on each device of a mesh.

    Args:
        f: function of pytrees of parts. Without it, a decorator is returned.
        mesh: by default the current one.
        in_specs: a `PartitionSpec` for all leaves of the arguments, or a pytree of them, as far down as they
            differ, for the tuple of arguments. Without them arrays are cut as they lie on the mesh.
        out_specs: the same for the result: parts are put together along the axes that it names; along the
            others, all devices must have the same.
        check_vma: check that, and let values know where they vary; `check_rep` is its older name.
        axis_names: the axes of the mesh that `f` sees; those of `auto` it does not see, the partitioner
            serves them.

    Raises: ValueError for arrays that specs cannot cut; for traced ones without specs; for a result that may
        differ along an axis that its spec does not name."""
    options = {
        "mesh": mesh,
        "in_specs": in_specs,
        "out_specs": out_specs,
        "axis_names": axis_names,
        "auto": auto,
        "check_vma": check_vma if check_rep is None else check_rep,
    }
    if f is None:
        return functools.partial(shard_map, **options)
    control.check_callable("shard_map: f argument should be callable.", f)

    @functools.wraps(f, updated=())
    @api_boundary
    def run_on_mesh(*args):
        return _run(f, args, **options)

    return run_on_mesh


def _run(f: Callable, args: tuple, *, mesh, in_specs, out_specs, check_vma, axis_names, auto) -> Any:
    frame, name = _read_frame(mesh, axis_names, auto, check_vma), locate_function(f)[0]
    leaves, tree, avals = control.flatten_operands(args)
    if in_specs is None:
        specs = [_infer_spec(frame, leaf, name) for leaf in leaves]
    else:
        specs = _read_specs(f"shard_map in_specs of {name}", tree,
                            tuple(in_specs) if isinstance(in_specs, list) else in_specs)
    for (path, _), aval, spec in zip(tree_leaves_with_path(args), avals, specs):
        _check_cut(frame, spec, aval, f"in_specs entry of args{keystr(path)} of {name}")
    parts = [frame.cut(aval, spec) for aval, spec in zip(avals, specs)]
    result: dict[str, Any] = {}

    def run(*values):
        outs, result["tree"] = tree_flatten(f(*tree.unflatten(values)))
        result["specs"] = _read_specs(f"shard_map out_specs of {name}", result["tree"], out_specs)
        paths = [path for path, _ in tree_leaves_with_path(result["tree"].unflatten(range(len(outs))))]
        return [_check_output(frame, name, path, out, spec)
                for path, out, spec in zip(paths, outs, result["specs"])]

    info = control.DebugInfo(*locate_function(f), "shard_map", control.name_arguments(f, tree))
    with frame.enter():
        closed, consts = close_over_consts(*trace_to_jaxpr(run, parts, info))
    outs = shard_map.primitive.bind(*consts, *leaves, jaxpr=closed, frame=frame,
                                    out_specs=tuple(result["specs"]),
                                    in_specs=(*[PartitionSpec()] * len(consts), *specs))
    return result["tree"].unflatten(outs)


def _read_frame(mesh: Any, axis_names: Any, auto: Any, is_checked: bool) -> Frame:
    mesh = get_mesh() if mesh is None else mesh
    if not isinstance(mesh, Mesh):
        raise ValueError(
            "shard_map takes a mesh, or needs a current one (`with mesh:`, `set_mesh`)"
            if mesh is None
            else f"shard_map takes a Mesh, got {mesh!r}")
    seen = {axis_names} if isinstance(axis_names, str) else set(axis_names or mesh.axis_names)
    if unknown := (seen | set(auto)) - set(mesh.axis_names):
        raise ValueError(
            f"shard_map names the axes {sorted(map(str, unknown))}, the mesh has {mesh.axis_names}")
    return Frame(mesh, tuple(name for name in mesh.axis_names if name in seen and name not in auto),
                 bool(is_checked))


def _infer_spec(frame: Frame, leaf: Any, name: str) -> PartitionSpec:
    """How an argument lies on the mesh. Raises: ValueError for a traced one, of which that is not known."""
    if isinstance(leaf, Tracer) and aval_of(leaf).ndim:
        raise ValueError(f"shard_map of {name} without in_specs reads how its arguments lie on the mesh, "
                         "which is not known of a traced value: pass in_specs")
    sharding = getattr(leaf, "sharding", None)
    is_there = isinstance(sharding, NamedSharding) and sharding.mesh == frame.mesh
    return sharding.spec if is_there else PartitionSpec()


def _read_specs(purpose: str, tree, specs: Any) -> list[PartitionSpec]:
    found = [PartitionSpec() if spec is None else spec for spec in flatten_axes(purpose, tree, specs)]
    for spec in found:
        if not isinstance(spec, PartitionSpec):
            raise TypeError(f"{purpose} must be PartitionSpecs, got {spec!r} of type {type(spec)}")
    return found


def _check_cut(frame: Frame, spec: PartitionSpec, aval: ShapedArray, where: str) -> None:
    """Raises: ValueError for a spec that an array cannot be cut by."""
    NamedSharding(frame.mesh, spec)
    if hidden := [name for name in frame.names_of(spec) if name not in frame.axes]:
        raise ValueError(f"shard_map {where} is {spec}, but the function does not see the axes {hidden}")
    if len(spec) > aval.ndim:
        raise ValueError(
            f"shard_map {where} is {spec}, which is too long for an array of type {aval.long()}: "
            f"it has {len(spec)} entries for {aval.ndim} axes")
    for axis, (extent, count) in enumerate(zip(aval.shape, frame.count_parts(spec, aval.ndim))):
        if extent % count:
            raise ValueError(
                f"shard_map {where} is {spec}, but axis {axis} of the array of type {aval.long()} has "
                f"{extent} elements, which is not evenly divisible by {count}")


def _check_output(frame: Frame, name: str, path, out: Any, spec: PartitionSpec) -> Any:
    """Raises: ValueError for a result that its spec does not fit."""
    NamedSharding(frame.mesh, spec)
    aval = aval_of(out)
    where = f"out_specs{keystr(path)}"
    if len(spec) > aval.ndim:
        raise ValueError(
            f"shard_map applied to the function '{name}' was given {where} = {spec}, which is too long for "
            f"its result of type {aval.long()}: it has {len(spec)} entries for {aval.ndim} axes")
    if not frame.is_checked:
        return out
    if rest := [repr(axis) for axis in frame.names_besides(spec) if axis in aval.varying]:
        raise ValueError(
            f"shard_map applied to the function '{name}' was given out_specs which require replication "
            f"which can't be statically inferred given the mesh: {where} is {spec}, which does not name "
            f"{', '.join(rest)}, along which the result of type {aval.long()} may vary.\n"
            "To fix: name the axis in out_specs, combine the devices' results (jitcore.lax.psum, pmean), "
            "or pass check_vma=False.")
    missing = tuple(axis for axis in frame.names_of(spec) if axis not in aval.varying)
    return pvary(out, missing) if missing else out
