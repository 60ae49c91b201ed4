import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import cg, spsolve


def laplacian(n):
    one = sp.diags([-1, 2, -1], [-1, 0, 1], shape=(n, n))
    return sp.kron(one, sp.eye(n)) + sp.kron(sp.eye(n), one)


for n in (20, 40, 60):
    A = laplacian(n).tocsc()
    b = np.ones(n * n)
    x = spsolve(A, b)
    y, info = cg(A, b)
    print(n, round(x.max(), 6), info, np.allclose(x, y, rtol=1e-3))
