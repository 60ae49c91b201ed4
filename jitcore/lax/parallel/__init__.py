"""Primitives over named axes: collectives, `shard_map`, and how values lie on meshes.

In: arrays inside of `vmap` or `shard_map`, which name their axes. Out: arrays; the partitioner does the rest.

Modules:
    collectives   Collectives: operations over the elements of a named axis of `vmap`, the devices along one
                  of `shard_map`, or the processes along one of ranks.
    exchanges     Collectives by which the elements of a named axis, or the devices along one, give each other
                  parts of values: `psum_scatter`, `ppermute`, `all_to_all`.
    partitioning  Values of a program on several devices: how they lie there is said, or asked.
    ranks         Named axes with a process for each element: the ranks of an MPI communicator.
    sharded       `shard_map`: a function of the parts of arrays, run on all devices of a mesh at once.
"""
