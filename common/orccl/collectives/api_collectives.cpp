// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/common/orccl/collectives/orccl_comm.h"
#include "torch_openreg/common/orccl/collectives/reduce.h"

#include <new>
#include <string>
#include <utility>

using namespace openreg::orccl;

// [common.orccl.api.enqueue] A call that fails halfway would leave this rank out of step, so it aborts.
template <class Enqueue>
static void enqueueInGroup(orcclComm& comm, orStream_t stream,
                           Enqueue enqueue) {
  if (comm.shared->isAborted()) return;
  orStreamCaptureStatus status;
  check(orStreamIsCapturing(stream, &status));
  require(status == orStreamCaptureStatusNone, orcclInvalidUsage,
          "A graph cannot hold communication with other processes; call it "
          "before or after the capture.");
  require(comm.shared->peers.isConnected(), orcclInvalidUsage,
          "The communicator does not know the other ranks; call "
          "orcclCommConnect before.");
  try {
    enqueue();
  } catch (...) {
    comm.shared->abort(nullptr);
    throw;
  }
}

// [common.orccl.api.collectives.enqueue] A collective is the description of a call, and addresses.
static orcclResult_t enqueue(orcclComm_t handle, orStream_t stream,
                             orcclCall_t call, size_t count,
                             const void* const* inputs,
                             void* const* outputs) noexcept {
  return guarded([&] {
    orcclComm& comm = find(handle);
    require(call.root >= 0 && call.root < comm.shared->size,
            orcclInvalidArgument, "The root is rank ", call.root,
            "; the group has the ranks 0 to ", comm.shared->size - 1, ".");
    if (reduces(call.func)) checkReduction(call.datatype, call.op);
    call.bytes = bytesOf(count, call.datatype);
    enqueueInGroup(comm, stream, [&] {
      for (const Step& step : comm.pipeline.plan(call, inputs, outputs)) {
        comm.pipeline.enqueue(stream, step);
      }
    });
  });
}

// [common.orccl.api.collectives.barrier] A barrier moves nothing, and still takes a round.
orcclResult_t orcclBarrier(orcclComm_t comm, orStream_t stream) noexcept {
  void* nothing = nullptr;
  return enqueue(comm, stream, {}, 0, &nothing, &nothing);
}

// [common.orccl.api.collectives.calls] The functions of the header say which collective it is, and how many addresses it has.
orcclResult_t orcclBroadcast(void* buffer, size_t count, orcclDataType_t type,
                             int root, orcclComm_t comm,
                             orStream_t stream) noexcept {
  return enqueue(comm, stream, {orcclFuncBroadcast, type, orcclSum, root, 0, 0},
                 count, &buffer, &buffer);
}

orcclResult_t orcclAllGather(const void* sendbuff, void* const* recvbuffs,
                             size_t count, orcclDataType_t type,
                             orcclComm_t comm, orStream_t stream) noexcept {
  return enqueue(comm, stream, {orcclFuncAllGather, type, orcclSum, 0, 0, 0},
                 count, &sendbuff, recvbuffs);
}

orcclResult_t orcclAllReduce(const void* sendbuff, void* recvbuff, size_t count,
                             orcclDataType_t type, orcclRedOp_t op,
                             orcclComm_t comm, orStream_t stream) noexcept {
  return enqueue(comm, stream, {orcclFuncAllReduce, type, op, 0, 0, 0}, count,
                 &sendbuff, &recvbuff);
}

orcclResult_t orcclReduce(const void* sendbuff, void* recvbuff, size_t count,
                          orcclDataType_t type, orcclRedOp_t op, int root,
                          orcclComm_t comm, orStream_t stream) noexcept {
  return enqueue(comm, stream, {orcclFuncReduce, type, op, root, 0, 0}, count,
                 &sendbuff, &recvbuff);
}

orcclResult_t orcclReduceScatter(const void* const* sendbuffs, void* recvbuff,
                                 size_t count, orcclDataType_t type,
                                 orcclRedOp_t op, orcclComm_t comm,
                                 orStream_t stream) noexcept {
  return enqueue(comm, stream, {orcclFuncReduceScatter, type, op, 0, 0, 0},
                 count, sendbuffs, &recvbuff);
}

// [common.orccl.api.group] Sends and receives outside of a group are a group of one.
namespace {

struct Group {
  int depth = 0;
  orcclResult_t result = orcclSuccess;
  std::string refusal;  ///< the sentence of the first one, as `result`
  orcclComm_t comm = nullptr;
  orStream_t stream = nullptr;
  std::vector<P2POp> ops;
};
thread_local Group group;

void collect(P2POp op, orcclComm_t comm, orStream_t stream) {
  const bool is_first = group.ops.empty();
  require(is_first || (group.comm == comm && group.stream == stream),
          orcclInvalidUsage,
          "The sends and receives of a group are on one stream of one "
          "communicator.");
  find(comm);
  group.comm = comm;
  group.stream = stream;
  group.ops.push_back(op);
}

// [common.orccl.api.group.add] The first refusal is kept for the end of the group, because other calls may be refused before.
orcclResult_t add(P2POp op, size_t count, orcclComm_t comm,
                  orStream_t stream) noexcept {
  orcclGroupStart();
  const orcclResult_t result = guarded([&] {
    op.bytes = bytesOf(count, op.datatype);
    collect(op, comm, stream);
  });
  if (result && !group.result) {
    group.result = result;
    static_cast<void>(guarded([] { group.refusal = orcclGetLastError(); }));
  }
  const orcclResult_t ended = orcclGroupEnd();
  return result ? result : ended;
}

}  // namespace

// [common.orccl.api.group.calls] The end of a group repeats the reason for which one of its calls was refused.
orcclResult_t orcclSend(const void* sendbuff, size_t count,
                        orcclDataType_t type, int peer, orcclComm_t comm,
                        orStream_t stream) noexcept {
  return add({true, peer, const_cast<void*>(sendbuff), type}, count, comm,
             stream);
}

orcclResult_t orcclRecv(void* recvbuff, size_t count, orcclDataType_t type,
                        int peer, orcclComm_t comm,
                        orStream_t stream) noexcept {
  return add({false, peer, recvbuff, type}, count, comm, stream);
}

// [common.orccl.api.group.end] The outermost end checks all operations before it enqueues the first.
orcclResult_t orcclGroupStart(void) noexcept {
  if (group.depth == 0) group = {};
  ++group.depth;
  return orcclSuccess;
}

orcclResult_t orcclGroupEnd(void) noexcept {
  return guarded([] {
    require(group.depth > 0, orcclInvalidUsage,
            "A group ends that has not begun; call orcclGroupStart first.");
    if (--group.depth > 0) return;
    const Group ended = std::exchange(group, {});
    // Then the host had no memory for the sentence.
    if (ended.result && ended.refusal.empty()) throw std::bad_alloc();
    require(!ended.result, ended.result, ended.refusal);
    if (ended.ops.empty()) return;
    orcclComm& comm = *ended.comm;
    comm.point_to_point.check(ended.ops);
    enqueueInGroup(comm, ended.stream, [&] {
      comm.point_to_point.enqueue(ended.stream, ended.ops);
    });
  });
}

// [common.orccl.api.host.calls] On the host, reductions and comparisons are done by the functions that the kernels call.
orcclResult_t orcclCheckReduction(orcclDataType_t type,
                                  orcclRedOp_t op) noexcept {
  return guarded([&] { checkReduction(type, op); });
}

orcclResult_t orcclReduceLocal(const void* const* sendbuffs, int n,
                               void* recvbuff, size_t count,
                               orcclDataType_t type, orcclRedOp_t op) noexcept {
  return guarded([&] {
    checkReduction(type, op);
    require(n > 0, orcclInvalidArgument, "A reduction of ", n,
            " inputs has no result.");
    reduceNumbers(recvbuff, {sendbuffs, static_cast<size_t>(n)}, count, type,
                  op);
  });
}

orcclResult_t orcclCompareCalls(const orcclCall_t* calls, const int* ranks,
                                int n) noexcept {
  return guarded([&] {
    const auto count = static_cast<size_t>(n);
    const std::string problem =
        findDisagreement({ranks, count}, {calls, count});
    require(problem.empty(), orcclInvalidUsage, problem);
  });
}

// [-]
