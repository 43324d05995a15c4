# SPDX-License-Identifier: BSD-3-Clause
"""The statistics of a batch, from those of its parts."""


def whole(means, variances, counts):
    """The mean and the variance of all numbers; a row of the arguments is a part."""
    counts = counts.to(means.dtype).unsqueeze(1)
    total = counts.sum()
    mean = (means * counts).sum(0) / total
    within = (variances * counts).sum(0) / total
    between = ((means - mean).square() * counts).sum(0) / total
    return mean, within + between
