"""Faults seeded into kernels: the device in software, or the results, show each of them."""

from __future__ import annotations

import functools

import pytest

from tests.backends.cuda.kernel_faults import KINDS, Subject, list_faults, list_programs

#: By kind, programs in which each fault of the kind matters.
MATTERS = {
    "a barrier left out": ("sum", "sum of columns", "sum of parts of columns", "transposed", "product of matrices",
                            "many counts", "many sums", "compress", "sort", "sort by digits"),
    "an access one element away": ("selu", "transposed", "gather", "sum of columns"),
    "a condition turned round, or one off": ("strided", "gather"),
    "a guard left out": ("selu", "gather", "counts"),
    "an atomic update in two steps": ("counts", "many counts", "count", "extremes", "add to rows"),
    "another lane of a shuffle": ("matrix times vector",),
    "another operator": ("strided", "gather", "counts"),
}


@functools.cache
def make_subject(name):
    return Subject(name, *list_programs()[name])


def test_the_table_is_whole():
    assert list(MATTERS) == list(KINDS)


@pytest.mark.parametrize("kind", MATTERS)
def test_each_fault_is_found(kind):
    for name in MATTERS[kind]:
        subject = make_subject(name)
        faults = [fault for fault in list_faults(name, subject.ptx) if fault.kind == kind][:6]
        assert faults
        for fault in faults:
            assert subject.judge(fault), str(fault)
