import torch
import torch_openreg

streams = [torch.Stream("openreg") for _ in range(33)]
print(len({stream.stream_id for stream in streams}), streams[32] == streams[0])

default, other = torch.openreg.default_stream(), streams[0]
print(default.stream_id, other.stream_id == other.native_handle)
print(torch.openreg.get_stream_from_external(other.native_handle) == other)

event = torch.Event("openreg")
print(event.event_id, event.query())
with other:
    print(torch.openreg.current_stream() == other)
    event.record()
default.wait_event(event)
event.synchronize()
print(event.event_id != 0, event.query(), torch.openreg.current_stream() == default)
