# SPDX-License-Identifier: BSD-3-Clause
"""Devices, streams and events are what the guard says they are."""

import threading

import pytest
import torch
import torch_tiny  # noqa: F401


def test_a_device_that_does_not_exist_is_refused_and_the_current_one_stays():
    before = torch.tiny.current_device()
    with pytest.raises(RuntimeError, match="orErrorInvalidDevice"):
        torch.tiny.set_device(99)
    assert torch.tiny.current_device() == before


def test_the_device_of_before_returns_after_an_exception():
    with pytest.raises(KeyError), torch.tiny.device(1):
        raise KeyError
    assert torch.tiny.current_device() == 0


def test_a_new_thread_begins_on_the_default_stream():
    default, stream, seen = torch.tiny.current_stream(), torch.Stream("tiny"), []
    with stream:
        thread = threading.Thread(target=lambda: seen.append(torch.tiny.current_stream()))
        thread.start()
        thread.join()
        assert torch.tiny.current_stream() == stream
    assert seen == [default] and torch.tiny.current_stream() == default


def test_a_new_stream_has_the_index_of_its_device():
    assert torch.Stream("tiny").device_index == 0
    assert torch.Stream("tiny:1").device_index == 1


def test_a_stream_waits_for_an_event_of_another():
    first, second, event = torch.Stream("tiny"), torch.Stream("tiny"), torch.Event("tiny")
    event.record(first)
    second.wait_event(event)
    second.synchronize()
    assert event.query()
    first.synchronize()  # A stream counts the recording a moment after the event is complete.
    assert first.query()


def test_an_event_that_was_never_recorded_is_complete():
    assert torch.Event("tiny").query()
