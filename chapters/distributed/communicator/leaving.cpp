// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/distributed/communicator/background.h"
#include "torch_openreg/chapters/distributed/communicator/mailbox.h"
#include "torch_openreg/common/openreg/interface/openreg_kernels.h"
#include "torch_openreg/common/openreg/interface/openreg_tools.h"

#include <poll.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

namespace openreg {

// [distributed.leaving.abort] The host cannot write device memory, so a kernel on a stream of its own raises the numbers.
void Mailboxes::abort() noexcept {
  is_aborted_ = true;
  // A device that refuses the kernel has failed, and has thereby ended its
  // waits.
  static_cast<void>(launch(control_, "abort", [self = shared_from_this()] {
    self->raiseNumbers();
  }));
}

void Mailboxes::fail(std::string problem) {
  {
    std::lock_guard lock(mutex_);
    if (problem_.empty()) problem_ = std::move(problem);
  }
  is_aborted_ = true;
  raiseNumbers();
}

std::string Mailboxes::problem() const {
  std::lock_guard lock(mutex_);
  return problem_;
}

// [distributed.leaving.ended] A descriptor of a process is readable when the process has ended, even if its parent has not noticed.
static bool hasEnded(int descriptor) {
  pollfd process{descriptor, POLLIN, 0};
  return descriptor >= 0 && poll(&process, 1, 0) == 1;
}

std::string Mailboxes::endedPeer() {
  if (!is_connected_) return "";
  std::lock_guard lock(peers_mutex_);
  for (int peer = 0; peer < size; ++peer) {
    Peer& process = peers_[peer];
    if (process.has_left || !hasEnded(process.descriptor)) continue;
    process.has_left = presenceOf(peer) >= Presence::left;
    if (process.has_left) continue;
    return "rank " + std::to_string(peer) + " (process " +
           std::to_string(process.process) +
           ") has ended without leaving the group";
  }
  return "";
}

// [distributed.leaving.settle] A call that waits for the device would take the error of a kernel that refused, which is for the program.
orError_t Mailboxes::settle() const noexcept {
  orError_t error = orStreamQuery(control_);
  for (int us = 10; error == orErrorNotReady; us = std::min(2 * us, 1000)) {
    std::this_thread::sleep_for(std::chrono::microseconds(us));
    error = orStreamQuery(control_);
  }
  return error;
}

Presence Mailboxes::presenceOf(int peer) const {
  const auto value = std::make_shared<uint32_t>();
  const auto look = [value, flag = &of(rank).presence[peer].value] {
    *value = std::atomic_ref(*flag);
  };
  orError_t error = launch(control_, "look", look);
  if (!error) error = settle();
  return error ? Presence::connected : static_cast<Presence>(*value);
}

// [distributed.leaving.announce] Goodbye is written before the process can end, so that a peer that has left is not reported.
void Mailboxes::announce(Presence presence) noexcept {
  if (!is_connected_) return;
  const auto write = [this, presence] {
    for (int peer = 0; peer < size; ++peer) {
      if (peer == rank) continue;
      std::atomic_ref(of(peer).presence[rank].value) =
          static_cast<uint32_t>(presence);
    }
  };
  if (launch(control_, "leave", write) == orSuccess) {
    static_cast<void>(settle());
  }
}

bool Mailboxes::areOthersDone() {
  for (int peer = 0; peer < size; ++peer) {
    if (peer == rank || hasEnded(peers_[peer].descriptor)) continue;
    const Presence presence = presenceOf(peer);
    if (presence != Presence::away && presence != Presence::unmapped) {
      return false;
    }
  }
  return true;
}

// [distributed.leaving.leave] Freeing waits for all work of the process, so a detached thread does it.
void Mailboxes::leave(std::shared_ptr<Mailboxes> mailboxes) noexcept {
  if (orIsForked()) return;
  mailboxes->abort();
  mailboxes->announce(Presence::left);
  try {
    runInBackground([mailboxes = std::move(mailboxes)]() mutable {
      free(std::move(mailboxes));
    });
  } catch (const std::exception&) {
    // Without a thread, the memory stays allocated until the process ends.
  }
}

// [distributed.leaving.free] A mailbox is freed when neither a kernel nor a peer uses it any more.
void Mailboxes::free(std::shared_ptr<Mailboxes> mailboxes) noexcept {
  auto pause = [ms = 1]() mutable {
    std::this_thread::sleep_for(std::chrono::milliseconds(ms));
    ms = std::min(2 * ms, 1000);
  };
  // The others are kernels that have not ended.
  while (mailboxes.use_count() > 1) pause();
  mailboxes->announce(Presence::unmapped);
  const auto close = [&own = mailboxes->of(mailboxes->rank)] {
    std::atomic_ref(own.identity) = 0;
  };
  static_cast<void>(launch(mailboxes->control_, "close", close));
  do {
    pause();
  } while (!mailboxes->areOthersDone());
  mailboxes->release();
}

void Mailboxes::release() noexcept {
  for (int peer = 0; peer < size; ++peer) {
    if (mapped_[peer] && peers_[peer].process != getpid()) {
      static_cast<void>(orIpcCloseMemHandle(mapped_[peer]));
    }
  }
  static_cast<void>(orFree(mapped_[rank]));
  static_cast<void>(orStreamDestroy(control_));
}

// [-]
}  // namespace openreg
