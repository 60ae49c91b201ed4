"""Elements of arrays by index expressions, index arrays, conditions and searches.

In: an array and an index. Out: elements, positions, or the array with other elements (`x.at[i].set(v)`).

Modules:
    plan       What an index expression means: the analysis shared by reading `x[index]` and writing
               `x.at[index]`.
    reading    Reading parts of arrays: `x[index]`, and `where`.
    searching  Positions: of nonzero elements, of values in a sorted array, between flat and multi-axis
               indices.
    taking     Choosing, taking and putting elements by conditions and index arrays, as functions.
    update     Writing parts of arrays: `x.at[index].set(v)` and its like, which return a new array.
"""
