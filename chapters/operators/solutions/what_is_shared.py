# SPDX-License-Identifier: BSD-3-Clause
"""Which arguments an operator shares with its results, and which it writes."""


def shared(operator):
    """(names of the arguments whose memory a result has, names of those that are written)"""
    schema = operator._schema
    given = {
        name for each in schema.returns if each.alias_info for name in each.alias_info.before_set
    }
    aliased = [each for each in schema.arguments if each.alias_info]
    return (
        [each.name for each in aliased if given & each.alias_info.before_set],
        [each.name for each in aliased if each.alias_info.is_write],
    )
