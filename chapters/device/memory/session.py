import torch
import torch_openreg


def show(after):
    print(after)
    for segment in torch.openreg.memory_snapshot():
        blocks = [f"{block['size']:,} {block['state']}" for block in segment["blocks"]]
        print(f"    {segment['segment_type']}:", ", ".join(blocks))


small = torch.UntypedStorage(1_000, device="openreg")
large = torch.UntypedStorage(3_000_000, device="openreg")
show("two storages")
del large
show("the large one is dropped")
larger = torch.UntypedStorage(19_000_000, device="openreg")
show("a larger one")

requested = torch.openreg.memory_stats()["requested_bytes.all.current"]
allocated, reserved = torch.openreg.memory_allocated(), torch.openreg.memory_reserved()
print(f"{requested:,} requested, {allocated:,} allocated, {reserved:,} reserved")
