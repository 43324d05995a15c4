# SPDX-License-Identifier: BSD-3-Clause
"""A group of one rank needs no other process to refuse what it cannot do."""

import copy
import datetime
import time

import differences
import pytest
import torch
import torch.distributed as dist
from running import run
from torch.openreg import sanitizer

Orccl = torch.openreg.ProcessGroupOrccl
DEVICE = torch.device("openreg", 0)


@pytest.fixture(scope="module")
def group():
    group = Orccl(dist.HashStore(), 0, 1)
    yield group
    group.shutdown()


def start(backend=None, **options):
    dist.init_process_group(backend, store=dist.HashStore(), rank=0, world_size=1, **options)


@pytest.fixture
def world():
    start(device_id=DEVICE)
    yield dist.group.WORLD
    dist.destroy_process_group()


def ones(*shape, **options):
    return torch.ones(*shape, device=DEVICE, **options)


def test_it_is_the_default_backend_of_the_device():
    assert dist.get_default_backend_for_device("openreg") == "orccl"
    assert dist.Backend.default_device_backend_map["openreg"] == "orccl"
    assert dist.Backend.backend_capability["orccl"] == ["openreg"]


def test_a_device_alone_finds_it(world):
    assert dist.get_backend() == "orccl"
    backend = world._get_backend(DEVICE)
    assert type(backend) is Orccl and backend.name() == "orccl"
    assert backend.supports_splitting and backend.supports_coalescing
    assert (backend.rank(), backend.size()) == (0, 1)
    tensor = ones(3)
    dist.all_reduce(tensor)
    dist.barrier()
    assert tensor.tolist() == [1, 1, 1]


CAN = {"supports_splitting", "supports_coalescing"}
CANNOT = {
    "supports_time_estimate", "supports_shrinking", "supports_reconfigure", "supports_window",
    "supports_abort_hooks", "supports_completion_hooks", "supports_tensor_alloc",
}  # fmt: skip


def test_it_answers_each_question_for_a_capability(group):
    asked = {name for name in dir(group) if "supports_" in name}
    assert asked > CAN
    # Since 2.15 one of the names begins with an underscore.
    assert {name.lstrip("_") for name in asked} <= CAN | CANNOT
    for name in asked:
        answer = getattr(group, name)
        answer = answer(DEVICE) if name == "supports_tensor_alloc" else answer
        assert answer is (name in CAN), name


def test_its_name_finds_it_without_autoload():
    program = """
    import torch, torch.distributed as dist

    dist.init_process_group("orccl", store=dist.HashStore(), rank=0, world_size=1)
    tensor = torch.ones(3, device="openreg")
    dist.all_reduce(tensor)
    print(tensor.tolist())
    dist.destroy_process_group()
    """
    done = run(program, TORCH_DEVICE_BACKEND_AUTOLOAD="0")
    if differences.BACKEND_ENTRY_POINTS:
        assert done.stdout == "[1.0, 1.0, 1.0]\n", done.stderr
    else:
        assert "Unknown backend" in done.stderr


def test_nothing_at_all_finds_it():
    start()
    tensor = ones(3)
    dist.all_reduce(tensor)
    dist.destroy_process_group()
    assert tensor.tolist() == [1, 1, 1]


def test_options_are_copied(world):
    backend = world._get_backend(DEVICE)
    options = backend.options
    assert options.backend == "orccl"
    for twin in (copy.copy(options), copy.deepcopy(options)):
        assert type(twin) is Orccl.Options and twin is not options
        assert twin._timeout == options._timeout == datetime.timedelta(minutes=30)
    backend.set_timeout(datetime.timedelta(seconds=5))
    assert backend.options._timeout == datetime.timedelta(seconds=5)


def test_the_options_of_a_program_decide_its_time_limit():
    start(pg_options=Orccl.Options(datetime.timedelta(seconds=5)))
    options = dist.group.WORLD._get_backend(DEVICE).options
    dist.destroy_process_group()
    assert options._timeout == datetime.timedelta(seconds=5)


def test_other_options_are_refused():
    with pytest.raises(TypeError, match="pg_options is a str; orccl takes a torch.openreg."):
        start("orccl", pg_options="")


# Each message once. The arguments are those of PyTorch's class of all backends.
REFUSALS = [
    ("allreduce", [[]], ValueError, "orccl was given 0 tensors; it needs 1."),
    ("allreduce_coalesced", [[]], ValueError,
     "orccl was given no tensor; each rank passes at least"),
    ("allreduce", [[torch.ones(1)]], ValueError,
     'but this one is on cpu; for both, make the group with backend="cpu:gloo,openreg:orccl".'),
    ("allreduce", [[torch.sparse_coo_tensor(size=(2, 2), device=DEVICE, check_invariants=False)]],
     ValueError, "orccl works on dense tensors, but this one has layout Sparse; pass its values,"),
    ("allreduce_coalesced", [[torch.ones(1, device=DEVICE), torch.ones(1, device="openreg:1")]],
     ValueError,
     "The tensors of one call are on openreg:0 and openreg:1; a rank passes tensors of one"),
    ("allreduce", [[ones(2).to(torch.float8_e5m2)]], TypeError,
     "orccl cannot reduce Float8_e5m2; convert the tensor to a type of integers or floating"),
    ("allreduce", [[ones(2, dtype=torch.complex64)], dist.ReduceOp.MAX], TypeError,
     "orccl reduces complex tensors with SUM, AVG and PREMUL_SUM only."),
    ("allreduce", [[ones(2, dtype=torch.int32)], dist._make_nccl_premul_sum(2.0)], TypeError,
     "orccl cannot multiply Int by the factor of PREMUL_SUM; convert the tensor to a floating"),
    ("allreduce", [[ones(2)], dist.ReduceOp.BAND], ValueError, "float32 have no"),
    ("broadcast", [ones(1), 1], ValueError,
     "The root of a broadcast is rank 1; this group has 1 ra"),
    ("reduce", [ones(1), 2], ValueError,
     "The root of a reduction is rank 2; this group has 1 ranks"),
    ("_allgather_base", [ones(3), ones(2)], ValueError,
     "The tensor for all ranks has 3 elements; 1 parts of 2 elements need 2."),
    ("_allgather_base", [ones(2, dtype=torch.int32), ones(2)], TypeError,
     "Input and output have different dtypes, Int and Float; a collective does not convert."),
    ("allgather", [[[ones(3)]], [ones(2)]], ValueError,
     "The input has 2 elements, the output 3; they need the same number."),
    ("reduce_scatter", [[ones(2)], [[ones(3)]]], ValueError,
     "The input has 3 elements, the output 2; they need the same number."),
    ("gather", [[[ones(3)]], [ones(2)]], ValueError,
     "The input has 2 elements, the output 3; they need the same number."),
    ("alltoall_base", [ones(()), ones(()), [], []], ValueError,
     "A tensor without dimensions has no rows that all_to_all_single could split; pass tensor.re"),
    ("send", [[ones(1)], 1, 0], ValueError, "The receiver is rank 1; this group has 1 ranks"),
    ("recv", [[ones(1)], 1, 0], ValueError, "The sender is rank 1; this group has 1 ranks"),
    ("send", [[ones(1)], 0, 0], ValueError,
     "A rank can send to itself only in a batch, which has both directions; use batch_isend"),
    ("recv_anysource", [[ones(1)], 0], NotImplementedError,
     "orccl receives from a rank that the call names; pass src, or send CPU tensors with gloo,"),
    ("_end_coalescing", [], RuntimeError,
     "A batch ends that has not begun; call _start_coalescing"),
]  # fmt: skip


@pytest.mark.parametrize("name, arguments, error, sentence", REFUSALS)
def test_wrong_arguments_are_refused_in_a_sentence(group, name, arguments, error, sentence):
    with pytest.raises(error) as refusal:
        getattr(group, name)(*arguments)
    assert sentence in str(refusal.value)
    tensor = ones(2)
    group.allreduce([tensor]).wait()  # Nothing has happened to the group.


def test_a_refused_call_is_not_counted_so_that_numbers_agree_between_ranks(group):
    before = group._get_sequence_number_for_group()
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor refers"):
        group.allreduce([ones(1).expand(3)])
    assert group._get_sequence_number_for_group() == before
    group.allreduce([ones(1)]).wait()
    assert group._get_sequence_number_for_group() == before + 1


def test_the_watchdog_leaves_what_a_kernel_refused_to_the_program(group):
    x, index = ones(3), torch.tensor([5], device=DEVICE)
    work = group.allreduce([x[index]])
    while not work.is_completed():
        time.sleep(0.01)
    time.sleep(0.2)  # The watchdog has looked.
    with pytest.raises(RuntimeError, match="could not run aten::index"):
        torch.openreg.synchronize()


def test_the_memory_of_a_refused_call_is_kept_while_it_is_read(group):
    with sanitizer.finding_races() as races:
        with pytest.raises(RuntimeError, match="more than one element"):
            group.allreduce([ones(1).expand(3)])
        ones(1)
        assert races() == []


def test_a_factor_on_the_device_is_kept_while_it_is_read(group):
    with sanitizer.finding_races() as races:
        tensor = ones(1 << 20)
        options = dist.AllreduceOptions()
        options.reduceOp = dist._make_nccl_premul_sum(torch.tensor([0.5], device=DEVICE))
        group.allreduce([tensor], options)
        del options
        others = [ones(1) for _ in range(64)]
        assert races() == [] and others


def test_a_list_is_refused_before_its_first_tensor_is_enqueued(group):
    first = ones(2)
    options = dist.AllreduceCoalescedOptions()
    options.reduceOp = dist._make_nccl_premul_sum(2.0)
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
        group.allreduce_coalesced([first, ones(1).expand(3)], options)
    torch.openreg.synchronize()
    assert first.tolist() == [1, 1]


def test_durations_need_to_be_asked_for(group):
    work = group.allreduce([ones(2)])
    told = "all_reduce, number .* of rank 0 was not measured; call"
    with pytest.raises(RuntimeError, match=told):
        work._get_duration()


def test_a_capture_refuses_communication(group):
    told = "orccl:all_reduce cannot be captured in a graph, bec"
    with torch.Stream(DEVICE), torch.accelerator.Graph():
        with pytest.raises(RuntimeError, match=told):
            group.allreduce([ones(2)])


def test_a_group_that_was_shut_down_or_aborted_says_so():
    for end, sentence in [("shutdown", "was shut down; make a new one"), ("abort", "was aborted;")]:
        group = Orccl(dist.HashStore(), 0, 1)
        tensor = ones(1)
        group.allreduce([tensor]).wait()
        assert tensor.item() == 1  # else an abort may leave it without a result
        getattr(group, end)()
        with pytest.raises(dist.DistBackendError, match=f"orccl: the group {sentence}"):
            group.allreduce([ones(1)])


def test_a_device_without_room_says_so_and_the_group_may_try_again():
    late = Orccl(dist.HashStore(), 0, 1)
    # No other test has a group on this device, which would free its memory at some later time.
    tensor = torch.ones(1, device="openreg:1")
    free, _ = torch.openreg.mem_get_info(1)
    rest = torch.UntypedStorage(free - (1 << 20), device="openreg:1")
    with pytest.raises(torch.OutOfMemoryError):
        late.allreduce([tensor])
    del rest
    torch.openreg.empty_cache()
    late.allreduce([tensor]).wait()
    late.shutdown()


def test_a_forked_child_is_refused_and_leaves_cleanly():
    program = """
        import os, torch, torch.distributed as dist
        dist.init_process_group(store=dist.HashStore(), rank=0, world_size=1)
        tensor = torch.ones(2, device="openreg")
        dist.all_reduce(tensor)
        child = os.fork()
        if not child:
            try:
                torch.openreg.ProcessGroupOrccl(dist.HashStore(), 0, 1)
            except RuntimeError as error:
                print(error, flush=True)
            dist.destroy_process_group()
            raise SystemExit(7)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        dist.all_reduce(tensor)
        dist.destroy_process_group()
    """
    result = run(program)
    assert result.returncode == 0, result.stderr
    assert "fork" in result.stdout


def test_a_child_that_is_forked_before_a_device_starts_has_a_watchdog_of_its_own(tmp_path):
    program = """
        import datetime, os, sys, torch, torch.distributed as dist
        dist.init_process_group(store=dist.HashStore(), rank=0, world_size=1, backend="orccl")
        def is_left(child):
            return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        child = os.fork()
        if not child:
            sys.exit()
        assert is_left(child)
        children = []
        for rank in range(2):
            children.append(os.fork())
            if children[-1]:
                continue
            dist.destroy_process_group()
            shared = dist.FileStore(sys.argv[1], 2)
            limit = datetime.timedelta(seconds=1)
            dist.init_process_group("orccl", store=shared, rank=rank, world_size=2, timeout=limit)
            tensor = torch.ones(2, device="openreg")
            dist.all_reduce(tensor)
            if rank == 0:
                dist.all_reduce(tensor)
                try:
                    torch.openreg.synchronize()
                except RuntimeError as error:
                    print(error, flush=True)
            else:
                shared.wait(["told"])
            shared.set("told", "")
            dist.destroy_process_group()
            sys.exit()
        assert all(map(is_left, children))
        dist.destroy_process_group()
    """
    result = run(program, tmp_path / "store")
    assert result.returncode == 0, result.stderr
    assert "was not done within 1000 ms" in result.stdout, result.stdout


def test_a_pytorch_without_distributed_is_told_in_a_sentence():
    program = """
        import os
        os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"
        import torch
        del torch._C._c10d_init
        import torch_openreg
    """
    assert (
        "ImportError: this PyTorch was built without torch.distributed, which torch_openreg needs; "
        "install one that has it, or build torch_openreg with"
    ) in run(program).stderr
