"""Random bits as primitives: what `jitcore.random` is made of.

In: seeds, keys, shapes. Out: keys and unsigned integers. Keys are elements of arrays of a `dtypes.KeyDtype`.

Modules:
    bit_generator    XLA's generator of bits: `rng_bit_generator`, by Philox-4x32 or Threefry-2x32.
    implementations  Implementations of keys: how words give keys and bits.
    keys             The primitives of keys: `random_seed`, `random_split`, `random_fold_in`, `random_bits`,
                     and the two between keys and their words.
    threefry         The Threefry-2x32 hash, the one primitive that random numbers need.
"""

from jitcore.lax.random.bit_generator import RandomAlgorithm, rng_bit_generator
from jitcore.lax.random.threefry import threefry2x32

__all__ = ["RandomAlgorithm", "rng_bit_generator", "threefry2x32"]
