# SPDX-License-Identifier: BSD-3-Clause
"""Random numbers and the start of the device: this chapter's share of `torch.openreg`."""

from . import _C
from ._device import _index, synchronize

# [hooks.python] The names that this chapter adds to `torch.openreg`.
__all__ = [
    "_initialized",
    "_is_in_bad_fork",
    "_lazy_init",
    "get_rng_state",
    "get_rng_state_all",
    "init",
    "initial_seed",
    "is_initialized",
    "manual_seed",
    "manual_seed_all",
    "seed",
    "seed_all",
    "set_rng_state",
    "set_rng_state_all",
]


# [hooks.python.start] PyTorch calls these before it first uses a device.
# Checkpointing saves random states only if this is true; ours exist before the device starts.
_initialized = True


def _is_in_bad_fork():
    """Whether this process was forked from one that had started the device."""
    return _C.is_forked()


def _lazy_init():
    """Refuses a forked child; otherwise does nothing, because the first use starts the device."""
    _C.init()


def init():
    """Starts the devices, if they have not started, like `torch.cuda.init`."""
    _lazy_init()
    if not _C.is_started():
        synchronize()


def is_initialized():
    """Whether the device has started, or this thread has chosen another than the first.

    A fake tensor without an index is on the current device if this is true, and else on the first.
    In a forked child, which can use no device, it is not.
    """
    return not _C.is_forked() and (_C.is_started() or _C.current_device() != 0)


# [hooks.python.seed] Seeds go to the current device, or to every device.
def _usable():
    """Whether there are devices to seed; a forked child has none, and its seeds are for the CPU."""
    return _C.device_count() > 0 and not _C.is_forked()


def _generators():
    _lazy_init()
    return [_C.default_generator(index) for index in range(_C.device_count())]


def manual_seed(seed):
    """Seeds the current device's generator, if there is a device; does nothing in a forked child."""
    seed = int(seed)
    if _usable():
        _C.default_generator(_C.current_device()).manual_seed(seed)


def manual_seed_all(seed):
    """Seeds the generators of all devices, as `torch.manual_seed` does."""
    seed = int(seed)
    for generator in _generators() if _usable() else ():
        generator.manual_seed(seed)


def seed():
    """Seeds the current device's generator, if any, with an unpredictable number; returns it."""
    if _usable():
        return _C.default_generator(_C.current_device()).seed()


def seed_all():
    """Seeds all generators with one unpredictable number."""
    if _usable():
        manual_seed_all(seed())


def initial_seed():
    """The seed of the current device's generator."""
    return _C.default_generator(_C.current_device()).initial_seed()


# [hooks.python.state] The state of a generator can be saved and restored.
def get_rng_state(device="openreg"):
    """The state of a device's generator: a CPU byte tensor, 16 bytes, seed then offset."""
    return _C.default_generator(_index(device)).get_state()


def set_rng_state(new_state, device="openreg"):
    """Restores a state of a device's generator that `get_rng_state` returned."""
    _C.default_generator(_index(device)).set_state(new_state)


def get_rng_state_all():
    """The states of all generators, by device."""
    return [generator.get_state() for generator in _generators()]


def set_rng_state_all(new_states):
    """Restores the states of all generators, by device."""
    generators, states = _generators(), list(new_states)
    if len(states) != len(generators):
        raise ValueError(
            f"There are {len(generators)} openreg devices, but {len(states)} states; give one for each."
        )
    # Copies first: an invalid state is refused before any generator changes.
    for those in [generator.clone_state() for generator in generators], generators:
        for generator, state in zip(those, states, strict=True):
            generator.set_state(state)


# [-]
