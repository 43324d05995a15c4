"""What an all_reduce costs, in the alpha-beta model: each message costs `alpha` seconds, and each
byte 1 / `rate`."""

from math import ceil, log2

HOST = 8  # devices of one host
INSIDE = 3e-6, 450e9  # seconds, bytes per second: a link between the devices of a host
BETWEEN = 10e-6, 50e9  # a network card for each device
FLAG = 0.3e-6  # to write one flag, while others are on their way


def direct(ranks, size, alpha, rate):
    """Each rank reads its slice from all others, and then the sums from all others."""
    return 2 * (alpha + (ranks - 1) * FLAG + size * (ranks - 1) / ranks / rate)


def ring(ranks, size, alpha, rate):
    """Slices go around twice."""
    return 2 * (ranks - 1) * (alpha + size / ranks / rate)


def tree(ranks, size, alpha, rate):
    """Sums go up and results come down, in pieces that follow each other."""
    return 2 * (ceil(log2(ranks)) * alpha + size / rate)


def two_levels(ranks, size):
    """Direct inside a host; between hosts, ranks of the same number exchange their slice."""
    hosts, inside = ranks // HOST, direct(HOST, size, *INSIDE)
    if hosts == 1:
        return inside
    return inside + min(way(hosts, size / HOST, *BETWEEN) for way in (ring, tree))


for name, size in (("1 KiB", 2**10), ("1 MiB", 2**20), ("1 GiB", 2**30)):
    print(f"{name:>6}     direct       ring       tree  two levels")
    for ranks in (8, 64, 512, 4096, 8192):
        link = INSIDE if ranks == HOST else BETWEEN
        times = [way(ranks, size, *link) for way in (direct, ring, tree)]
        times.append(two_levels(ranks, size))
        print(f"{ranks:6}" + "".join(f"{1e3 * time:11.3f}" for time in times))

# One host whose ranks share its memory and its cores, as in benchmarks/collectives.py: what two
# ranks take for the smallest and the largest tensor predicts what four ranks take.
MEASURED = {  # milliseconds of an all_reduce
    (2, 2**10): 0.146,
    (2, 2**26): 17.4,
    (4, 2**10): 0.341,
    (4, 2**20): 0.714,
    (4, 2**26): 47.7,
}
ALPHA = MEASURED[2, 2**10] / 2
BETA = (MEASURED[2, 2**26] - MEASURED[2, 2**10]) / 2**26 / 4


def shared(ranks, size):
    """Each rank copies its tensor into the stage, and reads its slice and the sums of the others."""
    return ranks * ALPHA + (ranks + 2 * (ranks - 1)) * size * BETA


print("four ranks     model  measured")
for size in (2**10, 2**20, 2**26):
    print(f"{size:10}{shared(4, size):10.3f}{MEASURED[4, size]:10.3f}")
