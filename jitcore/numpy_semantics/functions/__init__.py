"""NumPy's and SciPy's functions over handles.

In: a call as the user wrote it. Out: handles of the values, dtypes and memory that NumPy would give. Each
module fills the tables of `tables`, by which rewritten code finds what to call.

Modules:
    calls            What the implementations of NumPy's functions share: operands, results, and NumPy's own
                     word on dtypes.
    counting         NumPy's histograms over handles.
    creation         NumPy's functions that make arrays: what rewritten code calls instead of them.
    dispatch         NumPy's functions on handles, as `__array_function__` brings them here.
    grids            Iterators over all places of a grid: `np.ndindex`, `np.ndenumerate`, `itertools.product`
                     of ranges; and over floats at equal distances, the number of which is traced:
                     `np.arange`.
    indexing         NumPy's functions of positions in arrays over handles, and what counts by them:
                     `np.unravel_index`, `np.bincount`; bits and bytes.
    joining          NumPy's functions that join, repeat, move and pad arrays over handles. All of them copy.
    mapping          Functions of elements on whole arrays: `np.vectorize`; NumPy's polynomials, traced
                     through their source.
    memory           How arrays lie in memory, over handles: `x.view(dtype)`, `sliding_window_view`,
                     `x.flags`.
    products         NumPy's products and `numpy.linalg` over handles.
    python_math      The functions of `math` on traced numbers.
    reductions       NumPy's reductions and cumulative functions over handles.
    rehearsal        NumPy's own word on a call: the call is rehearsed on a few ones.
    rows             NumPy's and SciPy's functions as rows of a table: those that only unwrap their operands,
                     call a function of Arrays, mostly their namesake in `jitcore.numpy`, and wrap what it
                     gives.
    scipy_filters    SciPy's filters over handles: `scipy.signal` and `scipy.ndimage`.
    scipy_functions  SciPy's functions over handles: `special`, `linalg`, `fft`, `integrate`, `stats`,
                     `spatial.distance`.
    scipy_table      The table of what stands for SciPy's functions; `scipy_functions` and `scipy_filters`
                     fill it.
    searching        NumPy's functions that select, sort, search and count over handles.
    shaping          NumPy's functions of shapes over handles: views where NumPy gives views.
    streams          Generators of random numbers in traced code: methods draw by `lax.draw` what NumPy's and
                     Python's draw.
    tables           Tables of what stands for NumPy's functions and methods; the modules here and
                     `dynamic_extents` fill them.
    ufunc_methods    Methods of ufuncs on handles: `reduce`, `accumulate`, `outer`, `at`, `reduceat`.
    ufuncs           NumPy's ufuncs on handles.
"""
