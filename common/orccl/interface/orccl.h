// SPDX-License-Identifier: BSD-3-Clause
// The C interface of a collectives library, in the shape of NCCL's. It knows
// devices, streams and memory, and nothing of tensors.
#pragma once

#include "torch_openreg/common/openreg/interface/openreg.h"

#ifdef __cplusplus
extern "C" {
#endif

// [common.orccl.api.result] Every function returns one of these codes, and the reason is a sentence.
/// The outcome of a call. Any function that takes a communicator or enqueues
/// work may return orcclUnhandledDriverError.
typedef enum orcclResult_t {
  orcclSuccess = 0,
  /// The driver refused a call; `orPeekAtLastError` says which error it was.
  orcclUnhandledDriverError = 1,
  /// The system refused something.
  orcclSystemError = 2,
  /// A rank published something else than the library expects.
  orcclInternalError = 3,
  orcclInvalidArgument = 4,
  /// The ranks disagree about a call, or the call is not allowed here.
  orcclInvalidUsage = 5,
  /// A peer has left or has ended.
  orcclRemoteError = 6,
  /// The communicator was aborted.
  orcclAborted = 7,
} orcclResult_t;

/// What went wrong in the last call that failed on this thread, with values.
/// Valid until the next failure on this thread.
OPENREG_EXPORT const char* orcclGetLastError(void) OPENREG_NOEXCEPT;

// [common.orccl.api.types] A reduction needs the type of the numbers; moving compares it.
typedef enum orcclDataType_t {
  orcclBytes = 0, /**< the types that have no name here */
  orcclFloat32,
  orcclFloat64,
  orcclFloat16,
  orcclBfloat16,
  orcclInt8,
  orcclInt16,
  orcclInt32,
  orcclInt64,
  orcclUint8,
  orcclUint16,
  orcclUint32,
  orcclUint64,
  orcclBool,
  orcclComplex64, /**< moved, never reduced, as the types below */
  orcclComplex128,
  orcclFloat8e5m2,
  orcclFloat8e4m3fn,
  orcclFloat8e5m2fnuz,
  orcclFloat8e4m3fnuz,
  orcclFloat8e8m0fnu,
} orcclDataType_t;

// [common.orccl.api.reductions] Integers have all reductions, floating point has no bitwise ones.
/// orcclAvg divides the sum by the number of ranks. For booleans, sum and
/// maximum are "or", product and minimum are "and".
typedef enum orcclRedOp_t {
  orcclSum = 0,
  orcclAvg,
  orcclProd,
  orcclMin,
  orcclMax,
  orcclBand,
  orcclBor,
  orcclBxor,
} orcclRedOp_t;

// [common.orccl.api.card] Ranks find each other by their cards, which the program carries from each rank to all others.
/// Says where the memory of a rank is.
typedef struct orcclCard_t {
  char reserved[88]; /**< bytes to send to the other ranks as they are */
} orcclCard_t;

// [common.orccl.api.comm] Making a communicator waits for no other rank.
/// One rank's part of a group of processes of one host and one user, each with
/// one device. Ranks may also be in one process. The calls of a communicator
/// must come from one thread at a time unless they say otherwise, and its
/// device must be current there.
typedef struct orcclComm* orcclComm_t;

/// Allocates this rank's memory on the current device, and writes its card.
/// @returns orcclInvalidArgument unless there are 1 to 64 ranks and this is one
/// of them.
OPENREG_EXPORT orcclResult_t orcclCommInitRank(orcclComm_t* comm, int nranks,
                                               int rank, orcclCard_t* card)
    OPENREG_NOEXCEPT;
/// Must come before the first call that needs the other ranks, and may be
/// repeated. `cards` are those of all ranks; this rank's own is not read.
/// @returns orcclRemoteError if a peer has left or has ended.
OPENREG_EXPORT orcclResult_t
orcclCommConnect(orcclComm_t comm, const orcclCard_t* cards) OPENREG_NOEXCEPT;
/// Aborts, and waits for no other rank: the memory goes back to the device when
/// the peers have left, too.
OPENREG_EXPORT orcclResult_t orcclCommDestroy(orcclComm_t comm)
    OPENREG_NOEXCEPT;

// [common.orccl.api.abort] A group that cannot go on ends all of its waits.
/// Ends every wait of this rank's work, present and future: enqueued
/// collectives then complete without effect. The peers are not told; they find
/// out by themselves. Any thread may call it, any number of times. The first
/// `reason`, which may be null, is what requests say.
OPENREG_EXPORT orcclResult_t
orcclCommAbort(orcclComm_t comm, const char* reason) OPENREG_NOEXCEPT;
/// orcclInvalidUsage if the ranks disagreed about a call, which aborts the
/// communicator; orcclAborted if it was aborted otherwise; or orcclSuccess.
/// `orcclGetLastError` then names both calls. Any thread.
OPENREG_EXPORT orcclResult_t
orcclCommGetAsyncError(orcclComm_t comm, orcclResult_t* error) OPENREG_NOEXCEPT;
/// @returns orcclRemoteError if a peer has ended without leaving the group;
/// `orcclGetLastError` then names its rank and its process. Any thread; cheap.
OPENREG_EXPORT orcclResult_t orcclCommCheckPeers(orcclComm_t comm)
    OPENREG_NOEXCEPT;

// [common.orccl.api.collectives] Each rank calls the same collectives in the same order, and the device does the work.
/// Every collective only enqueues work on `stream`, and its memory, as orMalloc
/// returned it, must stay allocated until that work has run. The streams must
/// run the collectives of a communicator in the order of the calls. A buffer to
/// receive may be the one to send; they must not overlap otherwise. All ranks
/// receive identical bytes.
///
/// If the ranks disagree about a call (which collective, root, reduction, type,
/// or size), no rank's work of it hangs: `orcclCommGetAsyncError` tells them.
/// @returns orcclInvalidArgument for a rank that the group does not have or a
/// reduction that the type does not have, and orcclInvalidUsage if the stream
/// is captured or the communicator not connected. A call on an aborted
/// communicator enqueues nothing.
OPENREG_EXPORT orcclResult_t orcclAllReduce(const void* sendbuff,
                                            void* recvbuff, size_t count,
                                            orcclDataType_t datatype,
                                            orcclRedOp_t op, orcclComm_t comm,
                                            orStream_t stream) OPENREG_NOEXCEPT;
/// Writes `recvbuff` on rank `root` only; elsewhere it may be null.
OPENREG_EXPORT orcclResult_t orcclReduce(const void* sendbuff, void* recvbuff,
                                         size_t count, orcclDataType_t datatype,
                                         orcclRedOp_t op, int root,
                                         orcclComm_t comm,
                                         orStream_t stream) OPENREG_NOEXCEPT;
/// `buffer` receives what `root` has there.
OPENREG_EXPORT orcclResult_t orcclBroadcast(void* buffer, size_t count,
                                            orcclDataType_t datatype, int root,
                                            orcclComm_t comm,
                                            orStream_t stream) OPENREG_NOEXCEPT;
/// Work after it, on each rank, begins after all ranks' work before it.
OPENREG_EXPORT orcclResult_t orcclBarrier(orcclComm_t comm,
                                          orStream_t stream) OPENREG_NOEXCEPT;

// [common.orccl.api.parts] The buffers of the ranks need not be adjacent, so lists of tensors need no copy.
/// `recvbuffs[r]` receives the `count` numbers of rank r.
OPENREG_EXPORT orcclResult_t orcclAllGather(const void* sendbuff,
                                            void* const* recvbuffs,
                                            size_t count,
                                            orcclDataType_t datatype,
                                            orcclComm_t comm,
                                            orStream_t stream) OPENREG_NOEXCEPT;
/// `recvbuff` receives the reduction of all ranks' `sendbuffs` of this rank.
OPENREG_EXPORT orcclResult_t
orcclReduceScatter(const void* const* sendbuffs, void* recvbuff, size_t count,
                   orcclDataType_t datatype, orcclRedOp_t op, orcclComm_t comm,
                   orStream_t stream) OPENREG_NOEXCEPT;

// [common.orccl.api.point-to-point] Operations with different peers, or in different directions, do not wait for each other.
/// Sends to a peer arrive in the order of that peer's receives from this rank.
OPENREG_EXPORT orcclResult_t orcclSend(const void* sendbuff, size_t count,
                                       orcclDataType_t datatype, int peer,
                                       orcclComm_t comm,
                                       orStream_t stream) OPENREG_NOEXCEPT;
/// The same in the other direction.
OPENREG_EXPORT orcclResult_t orcclRecv(void* recvbuff, size_t count,
                                       orcclDataType_t datatype, int peer,
                                       orcclComm_t comm,
                                       orStream_t stream) OPENREG_NOEXCEPT;
/// Between the two calls, a thread's sends and receives are collected. They are
/// of one communicator and stream. They run concurrently, after the earlier
/// work of the stream, and its later work waits for all of them. A rank may
/// send to itself: the n-th send belongs to the n-th receive.
OPENREG_EXPORT orcclResult_t orcclGroupStart(void) OPENREG_NOEXCEPT;
/// Enqueues what was collected, unless one of the calls was refused.
OPENREG_EXPORT orcclResult_t orcclGroupEnd(void) OPENREG_NOEXCEPT;

// [common.orccl.api.request] After an abort a stream goes on, and the next read of its results must fail.
/// A point in a stream that knows whether the work before it was done.
typedef struct orcclRequest* orcclRequest_t;
/// Enqueued after an operation of `comm`, whose `name` an error mentions. The
/// request may outlive the communicator.
OPENREG_EXPORT orcclResult_t
orcclRequestRecord(orcclRequest_t* request, const char* name, orcclComm_t comm,
                   orStream_t stream) OPENREG_NOEXCEPT;
/// Enqueued on a stream that has waited for the operation. If it was not done,
/// the next call that waits for the stream returns orErrorKernelRefused, and
/// says why. Any thread.
OPENREG_EXPORT orcclResult_t
orcclRequestCheck(orcclRequest_t request, orStream_t stream) OPENREG_NOEXCEPT;
/// No other thread may use the request any more. Null is allowed.
OPENREG_EXPORT orcclResult_t orcclRequestFree(orcclRequest_t request)
    OPENREG_NOEXCEPT;

// [common.orccl.api.host] A group that spans hosts reduces and compares on the host, by these functions.
/// The size of one number in bytes; 0 if there is no such type.
OPENREG_EXPORT size_t orcclTypeSize(orcclDataType_t datatype) OPENREG_NOEXCEPT;
/// @returns orcclInvalidArgument if numbers of this type have no such
/// reduction.
OPENREG_EXPORT orcclResult_t
orcclCheckReduction(orcclDataType_t datatype, orcclRedOp_t op) OPENREG_NOEXCEPT;
/// Reduces `count` numbers of each of `n` buffers in host memory, one or more,
/// in their order: the same bytes as a collective's. `recvbuff` may be one.
OPENREG_EXPORT orcclResult_t orcclReduceLocal(const void* const* sendbuffs,
                                              int n, void* recvbuff,
                                              size_t count,
                                              orcclDataType_t datatype,
                                              orcclRedOp_t op) OPENREG_NOEXCEPT;

// [common.orccl.api.calls] Ranks agree about a call if all of these fields are equal.
typedef enum orcclFunc_t {
  orcclFuncBarrier = 0,
  orcclFuncBroadcast,
  orcclFuncAllReduce,
  orcclFuncReduce,
  orcclFuncAllGather,
  orcclFuncReduceScatter,
  orcclFuncSendRecv,
} orcclFunc_t;

/// What a rank has called.
typedef struct orcclCall_t {
  orcclFunc_t func;         /**< which collective */
  orcclDataType_t datatype; /**< of the numbers */
  orcclRedOp_t op;          /**< if it reduces */
  int root;                 /**< if it has one */
  size_t bytes;             /**< of one rank's arguments */
  uint64_t number;          /**< counts the calls from 1 */
} orcclCall_t;

/// @returns orcclInvalidUsage if the calls of the `n` ranks are not the same;
/// `orcclGetLastError` then names two that differ, the same on all ranks. The
/// ranks are those of a group, in their order, or a sender and its receiver.
OPENREG_EXPORT orcclResult_t orcclCompareCalls(const orcclCall_t* calls,
                                               const int* ranks,
                                               int n) OPENREG_NOEXCEPT;

// [-]
#ifdef __cplusplus
}
#endif
