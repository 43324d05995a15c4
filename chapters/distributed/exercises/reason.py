# SPDX-License-Identifier: BSD-3-Clause
"""Change: why an operation did not end in time."""


def reason(work, seconds):
    raise NotImplementedError("Return None, or the sentence that says why it has not ended.")
