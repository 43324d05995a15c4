# SPDX-License-Identifier: BSD-3-Clause
"""Forty mistakes that people really make in a backend, and the test that finds each."""

from typing import NamedTuple


class Mistake(NamedTuple):
    """`file` with `new` in the place of `old`, which stands there once. `test` is a file that
    pytest runs, or the name of a GoogleTest program."""

    name: str
    about: str
    file: str
    old: str
    new: str
    test: str


MISTAKES = []


def mistake(name, file, test, about, old, new):
    MISTAKES.append(Mistake(name, about, file, old, new, test))


# The guard.
mistake(
    "guard_wrong_device", "chapters/device/guard.cpp", "test-device",
    "The guard tells the current device of the thread, whatever it was asked to restore.",
    "return {kDeviceType, maybeExchangeDevice(device.index())};",
    "maybeExchangeDevice(device.index()); return device;",
)  # fmt: skip
mistake(
    "query_is_error", "chapters/device/runtime.cpp", "test-device",
    '"Not ready" is treated as complete.',
    "if (state == orErrorNotReady) return false;",
    "if (state == orErrorNotReady) return true;",
)  # fmt: skip
mistake(
    "event_of_current_stream", "chapters/device/guard.cpp",
    "chapters/device/streams/tests/test_streams.py",
    "An event is recorded on the current stream, not on the one that was named.",
    "check(orEventRecord(static_cast<orEvent_t>(*event), nativeStream(stream)));",
    "check(orEventRecord(static_cast<orEvent_t>(*event),\n"
    "                        currentNativeStream(stream.device_index())));",
)  # fmt: skip
mistake(
    "event_without_timing", "chapters/device/guard.cpp",
    "chapters/device/streams/tests/test_streams.py",
    "Events are always created without timing.",
    "? orEventEnableTiming",
    "? orEventDisableTiming",
)  # fmt: skip
mistake(
    "block_is_dropped", "chapters/device/guard.cpp",
    "chapters/device/streams/tests/test_streams.py",
    "`stream.wait_event` makes nothing wait.",
    "check(orStreamWaitEvent(nativeStream(stream), static_cast<orEvent_t>(event),\n                            0));",
    "",
)  # fmt: skip
mistake(
    "priority_is_lost", "chapters/device/streams/stream.cpp", "test-device",
    "Every stream of the pool has the normal priority.",
    "pools[index][-priority].next(index, priority)",
    "pools[index][0].next(index, 0)",
)  # fmt: skip
mistake(
    "stream_of_all_threads", "chapters/device/streams/stream.cpp",
    "chapters/device/streams/tests/test_streams.py",
    "All threads share one current stream.",
    "thread_local std::array<c10::StreamId, kMaxDevices> current_streams{};",
    "std::array<c10::StreamId, kMaxDevices> current_streams{};",
)  # fmt: skip

# The allocator.
mistake(
    "dropped_record_stream", "chapters/device/memory/cache_streams.cpp", "test-device",
    "`record_stream` is accepted and forgotten.",
    "others.push_back(stream);",
    "",
)  # fmt: skip
mistake(
    "reused_at_once", "chapters/device/memory/cache_streams.cpp", "test-device",
    "A block that another stream uses goes back to the cache at once.",
    "if (marks.empty() && !is_used_again) freeBlock(block);",
    "freeBlock(block);",
)  # fmt: skip
mistake(
    "event_too_early", "chapters/device/streams/stream.cpp", "test-device",
    "The other streams' events are queried as if they had been reached.",
    "if (orEventQuery(event) == orErrorNotReady) return false;",
    "",
)  # fmt: skip
mistake(
    "block_of_any_stream", "chapters/device/memory/cache.cpp", "test-device",
    "A free block is handed to any stream.",
    "&pools_[pool].bins[{stream.id(), small}],",
    "&pools_[pool].bins[{0, small}],",
)  # fmt: skip
mistake(
    "no_retry", "chapters/device/memory/cache.cpp", "test-device",
    "A full device is an error, although the cache holds free memory.",
    "    empty();\n    wanted = memory",
    "    wanted = memory",
)  # fmt: skip
mistake(
    "not_merged", "chapters/device/memory/cache.cpp", "test-device",
    "Freed neighbours are not merged.",
    "if (block->after && block->after->free) {",
    "if (false) {",
)  # fmt: skip
mistake(
    "zero_bytes", "chapters/device/memory/allocator.cpp", "test-device",
    "A tensor without elements gets memory from the driver.",
    "if (bytes == 0) return {nullptr, device};",
    "",
)  # fmt: skip
mistake(
    "fork_frees", "chapters/device/memory/allocator.cpp", "test-device",
    "A forked child frees the memory of its parent.",
    "if (orIsForked()) return;",
    "",
)  # fmt: skip

# The hooks.
mistake(
    "asking_starts", "chapters/hooks/hooks.cpp", "test-hooks",
    "Asking whether a device has started starts it.",
    "return started;",
    "return true;",
)  # fmt: skip
mistake(
    "seed_keeps_offset", "chapters/hooks/generator.cpp", "chapters/hooks/tests/test_generator.py",
    "A new seed keeps the offset of the old one.",
    "at = {{seed, 0}};",
    "at.state.seed = seed;",
)  # fmt: skip
mistake(
    "state_without_offset", "chapters/hooks/generator.cpp",
    "chapters/hooks/tests/test_generator.py",
    "The state of a generator is only its seed.",
    "std::memcpy(bytes.mutable_data_ptr(), &at, size);",
    "std::memset(bytes.mutable_data_ptr(), 0, size);\n  std::memcpy(bytes.mutable_data_ptr(), &at, 8);",
)  # fmt: skip
mistake(
    "pinned_at_once", "chapters/hooks/host_memory.cpp", "test-hooks",
    "Pinned memory is reused while a stream still reads it.",
    "bool query_event(orEvent_t& event) override { return isReached(event); }",
    "bool query_event(orEvent_t& event) override { isReached(event); return true; }",
)  # fmt: skip
mistake(
    "resize_forgets_stream", "chapters/hooks/storage/storage.cpp", "test-hooks",
    "A storage that grows frees its old memory before the copy has read it.",
    "allocator().recordStream(storage.data_ptr(), stream);",
    "",
)  # fmt: skip
mistake(
    "resize_keeps_too_much", "chapters/hooks/storage/storage.cpp", "chapters/hooks/storage/tests",
    "A storage that shrinks copies as many bytes as it had.",
    "std::min(bytes, storage.nbytes())",
    "storage.nbytes()",
)  # fmt: skip
mistake(
    "shared_before_written", "chapters/hooks/storage/sharing.cpp", "chapters/hooks/storage/tests",
    "Memory is shared with a process before the device has written it.",
    "synchronizeDevice(storage.device().index());",
    "",
)  # fmt: skip
mistake(
    "autoload_raises", "chapters/autoload/torch_openreg_autoload.py",
    "chapters/autoload/tests/test_refusals.py::test_python_files_without_libraries_say_how_to_get_them",
    "A backend that cannot be loaded makes `import torch` fail.",
    "except Exception as error:",
    "except ZeroDivisionError as error:",
)  # fmt: skip

# Operators.
mistake(
    "gaps_are_copied", "chapters/operators/minimal/copy.cpp", "chapters/operators/minimal/tests",
    "A copy of bytes is taken although the strides differ.",
    "(a.is_non_overlapping_and_dense() && a.strides() == b.strides()));",
    "a.is_non_overlapping_and_dense());",
)  # fmt: skip
mistake(
    "conjugate_is_lost", "chapters/operators/minimal/copy.cpp", "chapters/operators/minimal/tests",
    "A copy of bytes forgets that a view is conjugated.",
    "a.is_conj() == b.is_conj() && ",
    "",
)  # fmt: skip
mistake(
    "pinned_is_dropped", "chapters/operators/minimal/copy.cpp", "chapters/operators/minimal/tests",
    "`non_blocking=True` does not keep the pinned memory that it reads.",
    "if (non_blocking) return keep();",
    "if (non_blocking) return;",
)  # fmt: skip
mistake(
    "peer_does_not_wait", "chapters/operators/minimal/copy.cpp", "chapters/operators/minimal/tests",
    "A copy between devices does not wait for the stream of its source.",
    "  ready.block(writes);\n",
    "",
)  # fmt: skip
mistake(
    "source_is_overwritten", "chapters/operators/minimal/copy.cpp",
    "chapters/operators/minimal/tests",
    "The source of a copy between devices may be overwritten before it has been read.",
    "  done.block(reads);\n",
    "",
)  # fmt: skip
mistake(
    "wrong_default_device", "chapters/operators/minimal/minimal.cpp",
    "chapters/operators/minimal/tests",
    "`empty` allocates on the current device, not on the one asked for.",
    "  DeviceScope scope(device);\n  return filledIfAsked(at::detail::empty_generic(",
    "  return filledIfAsked(at::detail::empty_generic(",
)  # fmt: skip
mistake(
    "resize_counts_no_offset", "chapters/operators/minimal/minimal.cpp",
    "chapters/operators/minimal/tests/test_minimal.py",
    "`resize_` forgets where in its storage the tensor begins.",
    "size, self.element_size(), self.storage_offset());\n  if (bytes > before)",
    "size, self.element_size(), 0);\n  if (bytes > before)",
)  # fmt: skip
mistake(
    "fallback_shares_nothing", "chapters/operators/fallback/fallback.cpp",
    "chapters/operators/fallback/tests",
    "The fallback copies arguments that share memory one by one.",
    "if (sharesWritten(op, torch::jit::last(*stack, count)))",
    "if (false)",
)  # fmt: skip
mistake(
    "alpha_is_ignored", "chapters/operators/by_hand/add.cpp", "chapters/operators/by_hand/tests",
    "`torch.add(a, b, alpha=2)` is a + b.",
    "if (alpha.equal(1)) {",
    "if (true) {",
)  # fmt: skip
mistake(
    "generator_of_other_device", "chapters/operators/random/random.cpp",
    "chapters/operators/random/tests",
    "A generator of another device is accepted.",
    "TORCH_CHECK(chosen.device() == self.device(),",
    "TORCH_CHECK(true,",
)  # fmt: skip
mistake(
    "number_below_the_bound", "common/math/random/samplers.cpp", "chapters/operators/random/tests",
    "An integer is drawn that is rounded to one below the lower bound.",
    "least = roundedUp(first, digits)",
    "least = first",
)  # fmt: skip

# Mixed precision.
mistake(
    "no_fallthrough", "chapters/amp/autocast.cpp", "chapters/amp/tests",
    "Operators without a rule for autocast have no kernel.",
    "m.fallback(torch::CppFunction::makeFallthrough());",
    "",
)  # fmt: skip
mistake(
    "wrong_policy", "chapters/amp/autocast.cpp", "chapters/amp/tests",
    "What needs float32 is computed in 16 bits.",
    "KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32)",
    "KERNEL_PRIVATEUSEONE(__VA_ARGS__, lower_precision_fp)",
)  # fmt: skip
mistake(
    "flag_on_the_host", "chapters/amp/grad_scaler.cpp", "chapters/amp/tests",
    "The flag that says whether a gradient is infinite may be on the CPU, where it stays zero.",
    '  checkNumber("found_inf", found_inf, device);\n',
    "",
)  # fmt: skip

# Graphs.
mistake(
    "graph_memory_at_once", "chapters/graphs/capture/captured_graph.cpp",
    "chapters/graphs/capture/tests/test_pools.py::test_memory_of_a_graph_that_goes_waits_for_its_replay",
    "A graph that is dropped gives its memory back while a replay still runs.",
    "releasePool(device, pool_, users);",
    "releasePool(device, pool_, {});",
)  # fmt: skip
mistake(
    "same_numbers_in_replays", "chapters/graphs/random/captured_offsets.cpp",
    "chapters/graphs/capture/tests/test_capture.py::test_replayed_numbers_are_those_of_eager",
    "Every replay draws the same random numbers.",
    "used.counter->take(is_after_base ? used.at.state.offset : 0)",
    "used.counter->take(0)",
)  # fmt: skip

# The driver.
mistake(
    "uncleared_error", "common/openreg/errors/sticky_error.cpp", "test-simulator",
    "A reset does not clear the failure of a device.",
    "      failed_ = false;\n",
    "",
)  # fmt: skip
