// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/chapters/distributed/communicator/stream_join.h"
#include "torch_openreg/chapters/distributed/hosts/engine.h"
#include "torch_openreg/chapters/distributed/hosts/relay.h"

#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>

namespace openreg {

// [distributed.hosts.remote] Each direction of a pair on two hosts has a stream and a relay, so no transfer waits for another pair's.
class RemoteTransfers {
 public:
  /// `local` is aborted when a transfer fails.
  RemoteTransfers(int device, Engine engine, std::shared_ptr<Collectives> local)
      : device_(device), engine_(std::move(engine)), local_(std::move(local)) {}
  ~RemoteTransfers();
  RemoteTransfers(const RemoteTransfers&) = delete;
  RemoteTransfers& operator=(const RemoteTransfers&) = delete;

  /// Enqueues the transfers after the earlier work of `stream`.
  void begin(orStream_t stream, std::span<const Transfer> transfers);
  /// The later work of `stream` waits for all of them.
  void end(orStream_t stream, std::span<const Transfer> transfers);
  /// That of one direction of the pair; made when it is first asked for.
  orStream_t stream(bool is_send, int peer);

  void abort() noexcept;            ///< all lanes, as in Collectives
  bool isAborted() const noexcept;  ///< any thread
  std::string problem() const;      ///< of the first lane that has one

  // [distributed.hosts.remote.lanes] A lane counts its chunks, of which two have room, and its transfers.
 private:
  struct Lane {
    orStream_t stream = nullptr;
    std::shared_ptr<Relay> relay;
    /// The number of the last job for each of the two chunks.
    uint32_t jobs[2] = {};
    size_t chunks = 0;
    uint64_t transfers = 0;
  };

  Lane& lane(bool is_send, int peer);
  /// Enqueues the next chunk, which may be empty; returns its size.
  size_t enqueue(const Transfer& transfer, size_t done);

  const int device_;
  const Engine engine_;
  const std::shared_ptr<Collectives> local_;
  mutable std::mutex mutex_;
  std::map<std::pair<bool, int>, Lane> lanes_;
  StreamJoin join_;
};

// [-]
}  // namespace openreg
