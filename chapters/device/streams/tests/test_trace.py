# SPDX-License-Identifier: BSD-3-Clause
"""A program that listens to PyTorch's trace hears of our events, streams and memory."""

import json
import textwrap

import pytest
from running import printed


def traced(program, before=""):
    """What each callback was called with while `program` ran, in another process."""
    listening = f"""
        import json, torch, torch_openreg
        {before}
        trace, heard = torch.openreg._gpu_trace, []
        for name in dir(trace):
            if name.startswith("register_callback_for_"):
                what = name.removeprefix("register_callback_for_")
                getattr(trace, name)(lambda *values, what=what: heard.append((what, *values)))
        torch._C._activate_gpu_trace()
    """
    whole = textwrap.dedent(listening) + textwrap.dedent(program) + "\nprint(json.dumps(heard))"
    return json.loads(printed(whole, PYTHONFAULTHANDLER="1").splitlines()[-1])


def test_the_life_of_an_event_is_heard_in_its_order():
    heard = traced("""
        side, event = torch.Stream("openreg"), torch.Event("openreg")
        event.record()
        side.wait_event(event)
        event.synchronize()
        del event
        heard.append(("side", side.stream_id))
    """)
    (side,) = (values[0] for what, *values in heard if what == "side")
    events = [(what, values) for what, *values in heard if what.startswith("event_")]
    (event, *_) = events[0][1]
    assert events == [
        ("event_creation", [event]),
        ("event_record", [event, 0]),
        ("event_wait", [event, side]),
        ("event_synchronization", [event]),
        ("event_deletion", [event]),
    ]


def test_the_exception_that_frees_memory_stays_the_programs():
    heard = traced("""
        try:
            float(torch.UntypedStorage(512, device="openreg"))
        except TypeError:
            heard.append(("raised",))
    """)
    assert [what for what, *_ in heard] == ["memory_allocation", "memory_deallocation", "raised"]


def test_a_new_stream_is_heard_before_it_is_used():
    heard = traced("""
        side = torch.Stream("openreg")
        heard.append(("used", side.stream_id))
        torch.Stream("openreg")
    """)
    created = [values[0] for what, *values in heard if what == "stream_creation"]
    assert len(created) == len(set(created))
    assert heard.index(["used", heard[-1][1]]) == len(created)
    assert heard[-1][1] in created


def test_waits_of_the_host_are_heard():
    heard = traced("""
        side = torch.Stream("openreg")
        heard.clear()
        side.synchronize()
        torch.accelerator.synchronize()
        heard.append(("side", side.stream_id))
    """)
    side = heard[-1][1]
    assert heard[:-1] == [["stream_synchronization", side], ["device_synchronization"]]


def test_memory_is_heard_when_it_is_allocated_and_freed():
    heard = traced("""
        storage = torch.UntypedStorage(64, device="openreg")
        heard.append(("storage", storage.data_ptr()))
        del storage
    """)
    at = heard[0][1]
    assert heard == [["memory_allocation", at], ["storage", at], ["memory_deallocation", at]]


def test_a_callback_that_raises_does_not_stop_the_program():
    heard = traced("""
        trace.register_callback_for_event_creation(lambda event: 1 / 0)
        event = torch.Event("openreg")
        event.record()
        event.synchronize()
    """)
    assert [h[0] for h in heard] == ["event_creation", "event_record", "event_synchronization"]


def test_nothing_is_heard_after_the_trace_has_ended():
    heard = traced("""
        kept = torch.UntypedStorage(64, device="openreg")
        torch_openreg._C.end_trace()
        del kept
    """)
    assert [what for what, *_ in heard] == ["memory_allocation"]


def test_a_listener_that_runs_at_the_exit_returns_before_python_shuts_down():
    heard = traced("""
        import threading, time
        events, begun = [torch.Event("openreg")], threading.Event()
        events[0].record()
        def listens(event):
            begun.set()
            time.sleep(0.2)  # The program ends meanwhile.
        trace.register_callback_for_event_deletion(listens)
        threading.Thread(target=events.clear, daemon=True).start()
        begun.wait()
    """)
    assert heard[-1][0] == "event_deletion"


@pytest.mark.parametrize("name", ["torch.openreg._gpu_trace", "torch_openreg._gpu_trace"])
def test_the_module_exists_once(name):
    printed(f"import torch_openreg, {name} as m; assert m is torch_openreg._gpu_trace")


def test_the_names_are_those_of_cuda():
    lacking = traced("""
        import torch.cuda._gpu_trace as theirs
        names = {name for name in dir(theirs) if "allback" in name} - {"CallbackRegistry", "Callable"}
        heard += sorted(names - set(dir(trace)))
    """)
    assert lacking == []
