// SPDX-License-Identifier: BSD-3-Clause
// What holds for this driver only: kernels in OpenCL C, and what OpenCL lacks.
#include "torch_openreg/common/openreg/interface/openreg_graphs.h"
#include "torch_openreg/common/openreg/interface/openreg_signals.h"
#include "torch_openreg/common/openreg/interface/openreg_tools.h"
#include "torch_openreg/examples/opencl/driver/interface/openreg_opencl.h"
#include "torch_openreg/tests/openreg/streams.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace {

constexpr char kDouble[] =
    "__kernel void twice(__global char* p, ulong at, int n) {\n"
    "  __global int* x = (__global int*)(p + at);\n"
    "  if (get_global_id(0) < n) x[get_global_id(0)] *= FACTOR;\n"
    "}\n";

std::string detail() { return orGetErrorDetail(); }

orError_t launch(orFunction_t function, const void* address, int n) {
  const size_t global = 64, local = 16;
  const orArgument arguments[] = {{address, 0}, {&n, sizeof(n)}};
  return orFunctionLaunch(function, nullptr, 1, &global, &local, arguments, 2);
}

TEST(Function, a_kernel_reaches_the_middle_of_a_block) {
  int* block;
  orMalloc(reinterpret_cast<void**>(&block), 8 * sizeof(int));
  std::vector<int> values = {1, 2, 3, 4, 5, 6, 7, 8};
  orMemcpy(block, values.data(), 32, orMemcpyHostToDevice);
  orFunction_t function;
  ASSERT_EQ(orFunctionGet(&function, kDouble, "-DFACTOR=2", "twice"), orSuccess)
      << detail();
  EXPECT_EQ(launch(function, block + 3, 4), orSuccess) << detail();
  orMemcpy(values.data(), block, 32, orMemcpyDeviceToHost);
  EXPECT_EQ(values, (std::vector<int>{1, 2, 3, 8, 10, 12, 14, 8}));
  orFree(block);
}

TEST(Function, the_same_source_is_compiled_once_for_each_options) {
  orFunction_t one, again, other;
  orFunctionGet(&one, kDouble, "-DFACTOR=2", "twice");
  orFunctionGet(&again, kDouble, "-DFACTOR=2", "twice");
  orFunctionGet(&other, kDouble, "-DFACTOR=3", "twice");
  EXPECT_EQ(one, again);
  EXPECT_NE(one, other);
}

TEST(Function, a_mistake_is_told_with_kernel_device_and_line) {
  orFunction_t function;
  EXPECT_EQ(orFunctionGet(&function, kDouble, "", "twice"),
            orErrorInvalidValue);
  orDeviceProp properties;
  orGetDeviceProperties(&properties, 0);
  EXPECT_EQ(
      detail().find(std::string("The kernel twice does not compile for ") +
                    properties.name + ": "),
      0u)
      << detail();
  EXPECT_NE(detail().find(":3:"), std::string::npos) << detail();
  EXPECT_NE(detail().find("FACTOR"), std::string::npos) << detail();
}

TEST(Function, a_kernel_that_is_not_there_is_named) {
  orFunction_t function;
  EXPECT_EQ(orFunctionGet(&function, kDouble, "-DFACTOR=2", "thrice"),
            orErrorInvalidValue);
  EXPECT_EQ(detail(), "The source has no kernel thrice.");
}

TEST(Function, wrong_arguments_are_refused_by_number) {
  orFunction_t function;
  orFunctionGet(&function, kDouble, "-DFACTOR=2", "twice");
  int host = 0;
  EXPECT_EQ(launch(function, &host, 1), orErrorInvalidValue);
  EXPECT_EQ(detail().find("Argument 0 of the kernel twice, 0x"), 0u);
  EXPECT_NE(detail().find(", is no address in device memory."),
            std::string::npos);
  void* block;
  orMalloc(&block, 512);
  const size_t global = 16, local = 16;
  const orArgument arguments[] = {{block, 0}, {&global, sizeof(global)}};
  EXPECT_EQ(
      orFunctionLaunch(function, nullptr, 1, &global, &local, arguments, 2),
      orErrorInvalidValue);
  EXPECT_EQ(detail(),
            "Argument 1 of the kernel twice does not fit: clSetKernelArg "
            "returned CL_INVALID_ARG_SIZE (-51).");
  EXPECT_EQ(launch(nullptr, block, 1), orErrorInvalidValue);
  EXPECT_EQ(detail(), "A launch needs a function, not null.");
  EXPECT_EQ(orFunctionGet(nullptr, kDouble, "", "twice"), orErrorInvalidValue);
  EXPECT_EQ(detail(),
            "orFunctionGet needs a place, a source, options and a name, not "
            "null.");
  orFree(block);
}

TEST(Function,
     a_grid_that_the_groups_do_not_divide_is_refused_with_the_kernel) {
  orFunction_t function;
  orFunctionGet(&function, kDouble, "-DFACTOR=2", "twice");
  void* block;
  orMalloc(&block, 512);
  const int n = 1;
  const size_t global = 17, local = 16;
  const orArgument arguments[] = {{block, 0}, {&n, sizeof(n)}};
  EXPECT_EQ(
      orFunctionLaunch(function, nullptr, 1, &global, &local, arguments, 2),
      orErrorUnknown);
  EXPECT_EQ(detail(), "twice returned CL_INVALID_WORK_GROUP_SIZE (-54).");
  orFree(block);
}

TEST(Copy, parts_of_a_block_that_overlap_are_refused) {
  char* block;
  orMalloc(reinterpret_cast<void**>(&block), 64);
  EXPECT_EQ(orMemcpy(block + 16, block, 32, orMemcpyDeviceToDevice),
            orErrorInvalidValue);
  EXPECT_EQ(detail(),
            "OpenCL cannot copy between two parts of a block that overlap; "
            "copy by way of a third place.");
  EXPECT_EQ(orMemcpy(block + 32, block, 32, orMemcpyDeviceToDevice), orSuccess);
  EXPECT_EQ(orMemcpy(block, block, 32, orMemcpyDeviceToDevice), orSuccess);
  orFree(block);
}

TEST(Copy, between_pinned_blocks_it_keeps_its_place_in_the_stream) {
  char *a, *b;
  orMallocHost(reinterpret_cast<void**>(&a), 8);
  orMallocHost(reinterpret_cast<void**>(&b), 8);
  Stream stream;
  enqueue(stream.handle, [=] { a[0] = 7; });
  EXPECT_EQ(orMemcpyAsync(b, a, 8, orMemcpyHostToHost, stream.handle),
            orSuccess);
  orStreamSynchronize(stream.handle);
  EXPECT_EQ(b[0], 7);
  orFreeHost(a);
  orFreeHost(b);
}

TEST(Host, a_host_function_may_enqueue_and_must_not_wait) {
  orError_t enqueued = orErrorUnknown, waited = orSuccess;
  enqueue(nullptr, [&] {
    enqueued = enqueue(nullptr, [] {});
    waited = orDeviceSynchronize();
  });
  EXPECT_EQ(orDeviceSynchronize(), orSuccess);
  EXPECT_EQ(enqueued, orSuccess);
  EXPECT_EQ(waited, orErrorNotPermitted);
}

TEST(Stream, ten_thousand_commands_wait_for_room) {
  Stream stream;
  int count = 0;
  for (int i = 0; i < 10000; ++i) enqueue(stream.handle, [&] { ++count; });
  orStreamSynchronize(stream.handle);
  EXPECT_EQ(count, 10000);
}

TEST(Memory, one_block_cannot_be_larger_than_the_runtime_allows) {
  size_t free, total;
  orMemGetInfo(&free, &total);
  void* block;
  EXPECT_EQ(orMalloc(&block, total), orErrorMemoryAllocation);
  EXPECT_NE(detail().find("openreg:0 has no block of " + std::to_string(total) +
                          " bytes; the OpenCL runtime allows at most "),
            std::string::npos)
      << detail();
}

TEST(Tools, what_this_driver_lacks_is_refused_each_in_its_words) {
  EXPECT_EQ(orInject("launch:1"), orErrorNotSupported);
  EXPECT_EQ(detail(),
            "An OpenCL device cannot be made to fail, so this driver has no "
            "fault injection.");
  EXPECT_EQ(orInject(nullptr), orSuccess);
  EXPECT_EQ(orSetWaitCallback(0, nullptr, nullptr), orErrorNotSupported);
  EXPECT_EQ(detail(), "OpenCL has no wait that ends before the work does.");
  const auto observe = [](const orRecord*, void*) {};
  orObserver_t observer = nullptr;
  for (orError_t error :
       {orAddObserver(&observer, observe, nullptr), orRemoveObserver(observer),
        orRangePush("range"), orRangePop()}) {
    EXPECT_EQ(error, orErrorNotSupported);
    EXPECT_EQ(detail(),
              "This driver does not report its commands to an observer; use a "
              "profiler of the OpenCL runtime.");
  }
  orGraph_t graph = nullptr;
  orGraphExec_t exec = nullptr;
  orStreamCaptureMode mode = orStreamCaptureModeRelaxed;
  uint64_t id;
  size_t count;
  for (orError_t error :
       {orStreamBeginCapture(nullptr, orStreamCaptureModeGlobal),
        orStreamEndCapture(nullptr, &graph), orStreamGetCaptureId(nullptr, &id),
        orThreadExchangeStreamCaptureMode(&mode),
        orGraphGetNodeCount(graph, &count),
        orGraphDebugDotPrint(graph, "graph.dot"), orGraphDestroy(graph),
        orGraphInstantiate(&exec, graph), orGraphLaunch(exec, nullptr),
        orGraphExecDestroy(exec)}) {
    EXPECT_EQ(error, orErrorNotSupported);
    EXPECT_EQ(detail(),
              "OpenCL 1.2 has no graphs, so work cannot be captured; run it as "
              "it is.");
  }
  uint32_t number = 0;
  for (orError_t error : {orStreamWaitValue32(nullptr, &number, 1),
                          orStreamWriteValue32(nullptr, &number, 1)}) {
    EXPECT_EQ(error, orErrorNotSupported);
    EXPECT_EQ(detail(),
              "OpenCL 1.2 has no queue that waits for a number in memory; wait "
              "for an event, or on the host.");
  }
  orIpcMemHandle_t handle;
  void* block = nullptr;
  for (orError_t error :
       {orIpcGetMemHandle(&handle, block), orIpcOpenMemHandle(&block, handle),
        orIpcCloseMemHandle(block)}) {
    EXPECT_EQ(error, orErrorNotSupported);
    EXPECT_EQ(detail(),
              "OpenCL 1.2 cannot share device memory between processes; send a "
              "copy on the CPU.");
  }
}

}  // namespace
