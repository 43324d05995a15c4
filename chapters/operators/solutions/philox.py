# SPDX-License-Identifier: BSD-3-Clause
"""Extend: the numbers of `torch.rand` on openreg, told in advance from a seed and an offset."""

BITS = 0xFFFFFFFF


def philox(seed, offset, place):
    """Philox 4x32 with ten rounds: four words that depend on nothing but these three numbers."""
    c = [offset & BITS, offset >> 32, place & BITS, place >> 32]
    k = [seed & BITS, seed >> 32]
    for _ in range(10):
        a, b = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [b >> 32 ^ c[1] ^ k[0], b & BITS, a >> 32 ^ c[3] ^ k[1], a & BITS]
        k = [(k[0] + 0x9E3779B9) & BITS, (k[1] + 0xBB67AE85) & BITS]
    return c


def rand(seed, offset, count):
    """What `torch.rand(count)` draws in float32: of 64 bits the 24 highest, as a fraction."""
    numbers = []
    for place in range(-(-count // 2)):
        words = philox(seed, offset, place)
        numbers += [(high >> 8) / 2**24 for high in words[::2]]
    return numbers[:count]
