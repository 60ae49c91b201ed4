"""The calls, one module for each group of namespaces. In: nothing. Out: `TABLES` of `tests.differential.table`."""

from tests.differential.tables import (lax_functions, linear_algebra, nn_functions,  # noqa: F401
                                       numpy_elementwise, numpy_reductions, numpy_shapes, scipy_functions)
