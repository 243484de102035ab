# SPDX-License-Identifier: Apache-2.0
"""Options of a Loader that a test picks one by one, in the groups that a Loader takes; and all of a Loader, one by one."""

from dataclasses import fields


def _groups():
    import tokmap  # the test says first where it is

    kinds = tokmap.Order, tokmap.Rows, tokmap.Ranks, tokmap.Reading, tokmap.Resume, tokmap.Record, tokmap.Slots
    return {kind.__name__.lower(): kind for kind in kinds}


def grouped(**flat):
    """Arguments for a Loader. What is in a group already stays."""
    for name, kind in _groups().items():
        own = {field.name: flat.pop(field.name) for field in fields(kind) if field.name in flat}
        if own:
            flat[name] = kind(**own)
    return flat


def open_loader(*arguments, **flat):
    import tokmap

    return tokmap.Loader(*arguments, **grouped(**flat))


def flat(loader):
    """Its arguments by their names, and those of its groups."""
    found = dict(vars(loader._own_options()))
    for name in _groups():
        found.update(vars(found.pop(name)))
    return found
