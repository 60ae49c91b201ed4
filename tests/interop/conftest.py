"""What tests of Dask share: the schedulers that run its tasks."""

import pytest


@pytest.fixture(scope="session")
def client():
    """Two worker processes of one thread."""
    distributed = pytest.importorskip("distributed", reason="distributed is not installed: jitcore[interop]")
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster, distributed.Client(cluster) as made:
        yield made


@pytest.fixture(params=["threads", "client"])
def scheduler(request):
    import dask

    if request.param == "client":
        request.getfixturevalue("client")
        yield
    else:
        with dask.config.set(scheduler="threads"):
            yield
