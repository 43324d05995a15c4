// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/common/openreg/interface/openreg.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

namespace openreg {

// [distributed.collectives.types] A reduction needs the type of the numbers; moving compares it.
enum class NumberType : uint8_t {
  bytes,  // the types that have no name here
  float32,
  float64,
  float16,
  bfloat16,
  int8,
  int16,
  int32,
  int64,
  uint8,
  uint16,
  uint32,
  uint64,
  boolean,
  // Moved, never reduced:
  complex64,
  complex128,
  float8_e5m2,
  float8_e4m3fn,
  float8_e5m2fnuz,
  float8_e4m3fnuz,
  float8_e8m0fnu,
};

/// The size of one number in bytes.
size_t sizeOf(NumberType type);

// [distributed.collectives.reduction] Integers have all reductions, floating point has no bitwise ones.
/// `average` divides the sum by the number of ranks. For booleans `sum` and
/// `maximum` are "or", `product` and `minimum` are "and".
enum class Reduction : uint8_t {
  sum,
  average,
  product,
  minimum,
  maximum,
  bit_and,
  bit_or,
  bit_xor,
};

/// One direction of a transfer between two ranks.
struct Transfer {
  bool is_send;  ///< otherwise it receives
  int peer;      ///< a rank of the group
  void* data;    ///< device memory; only read if it is sent
  size_t bytes;  ///< as many as the peer says
  NumberType type = NumberType::bytes;  ///< that of the peer, too
};

// [distributed.collectives] Each rank calls the same collectives in the same order, and the device does the work.
/// One member's part of a group of `size()` ranks. All pointers are addresses
/// of memory on the device of this object, as orMalloc returned them. Every
/// collective only enqueues work on `stream`, and the memory must stay
/// allocated until that work has run. The calls of one object must come from
/// one thread at a time. Collectives of one group must use streams that run
/// them in the order of the calls.
///
/// If the ranks of a group disagree about a call (which collective, root,
/// reduction, number type, or bytes), no rank's work of it hangs: the group is
/// aborted, and `problem()` names both calls.
/// @throws c10::Error as `check` does if the driver refuses a command,
/// c10::ValueError for a root or peer outside 0..size()-1, or a reduction that
/// the number type does not have.
class Collectives {
 public:
  virtual ~Collectives() = default;

  /// From 0 to `size() - 1`.
  virtual int rank() const = 0;
  /// How many ranks the group has.
  virtual int size() const = 0;

  // [distributed.collectives.calls] A call enqueues work on a stream, and returns.
  /// Work after it, on each rank, begins after all ranks' work before it.
  virtual void barrier(orStream_t stream) = 0;
  /// `data` receives the bytes of `root`, and is only read there.
  virtual void broadcast(orStream_t stream, void* data, size_t bytes, int root,
                         NumberType type = NumberType::bytes) = 0;
  /// `output` and `input` may be the same memory, here and below; they must not
  /// overlap otherwise. All ranks receive identical bytes.
  virtual void allReduce(orStream_t stream, void* output, const void* input,
                         size_t count, NumberType type,
                         Reduction reduction) = 0;
  /// Writes `output` on rank `root` only; elsewhere it may be null.
  virtual void reduce(orStream_t stream, void* output, const void* input,
                      size_t count, NumberType type, Reduction reduction,
                      int root) = 0;
  /// `outputs[r]` receives the `bytes` bytes of rank r.
  virtual void allGather(orStream_t stream, std::span<void* const> outputs,
                         const void* input, size_t bytes,
                         NumberType type = NumberType::bytes) = 0;
  /// `output` receives the reduction of all ranks' `inputs[rank()]`.
  virtual void reduceScatter(orStream_t stream, void* output,
                             std::span<const void* const> inputs, size_t count,
                             NumberType type, Reduction reduction) = 0;

  // [distributed.collectives.transfer] Transfers with different peers, or in different directions, do not wait for each other.
  /// Sends to a peer arrive in the order of that peer's receives from this
  /// rank. The transfers of one call run concurrently, after the earlier work
  /// of `stream`, and the later work of `stream` waits for all of them. A
  /// transfer of this rank with itself is a copy: the n-th send of a call
  /// belongs to its n-th receive.
  virtual void transfer(orStream_t stream,
                        std::span<const Transfer> transfers) = 0;
  /// The stream on which all transfers of this direction with `peer` run. A
  /// single transfer that is enqueued there waits for no other ones.
  virtual orStream_t transferStream(bool is_send, int peer) = 0;

  // [distributed.collectives.end] A group that cannot go on ends all of its waits.
  /// Ends every wait of this rank's work, present and future: enqueued
  /// collectives then complete without effect. Any thread may call it, any
  /// number of times. The peers are not told; they find out by themselves.
  virtual void abort() noexcept = 0;
  /// Whether `abort` was called. Any thread.
  virtual bool isAborted() const noexcept = 0;
  /// The same for work on the device, which may run when this object has gone.
  virtual std::shared_ptr<const std::atomic<bool>> abortedFlag() const = 0;
  /// A sentence if the ranks disagreed about a call; otherwise empty. Any
  /// thread.
  virtual std::string problem() const = 0;
  /// A sentence that names the rank and the process of a peer that has ended
  /// without leaving the group; empty if there is none. Any thread; cheap.
  virtual std::string endedPeer() const = 0;

  // [distributed.collectives.protected] Every kind of group refuses the same arguments in the same words.
 protected:
  /// @throws c10::ValueError if the group has no such rank.
  void checkRank(const char* role, int rank) const;
  /// As `checkRank`.
  void checkPeer(bool is_send, int peer) const;
  /// `call` has a list of `count` `what`, and needs one for each rank.
  void checkParts(const char* call, const char* what, size_t count) const;
  /// @throws c10::ValueError if the reduction is not defined for the type.
  static void checkReduction(NumberType type, Reduction reduction);
  /// @throws c10::NotImplementedError if `stream` is captured.
  static void checkNotCaptured(orStream_t stream);
};

// [-]
}  // namespace openreg
