// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/distributed/communicator/transfer.h"

#include "torch_openreg/chapters/device/runtime.h"
#include "torch_openreg/common/check.h"
#include "torch_openreg/common/openreg/interface/openreg_kernels.h"
#include "torch_openreg/common/openreg/interface/openreg_signals.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <string>
#include <vector>

namespace openreg {

// [distributed.transfer.stream] The streams have the highest priority, because a peer waits for their short kernels.
orStream_t Transfers::stream(bool is_send, int peer) {
  orStream_t& stream = streams_[is_send].at(peer);
  if (!stream) {
    const DeviceScope scope(static_cast<c10::DeviceIndex>(mailboxes_->device));
    int least, greatest;
    check(orDeviceGetStreamPriorityRange(&least, &greatest));
    check(orStreamCreateWithPriority(&stream, 0, greatest));
  }
  return stream;
}

Transfers::~Transfers() {
  for (const auto& direction : streams_) {
    for (orStream_t stream : direction) {
      if (stream) static_cast<void>(orStreamDestroy(stream));
    }
  }
}

// [distributed.transfer.self] A rank's transfer to itself is a copy on the stream of the call.
std::vector<Transfer> selectTransfers(std::span<const Transfer> transfers,
                                      bool is_send, int peer) {
  std::vector<Transfer> selected;
  std::copy_if(transfers.begin(), transfers.end(), std::back_inserter(selected),
               [&](const Transfer& transfer) {
                 return transfer.is_send == is_send && transfer.peer == peer;
               });
  return selected;
}

void checkTransfersToSelf(int rank, std::span<const Transfer> transfers) {
  const auto sends = selectTransfers(transfers, true, rank);
  const auto receives = selectTransfers(transfers, false, rank);
  TORCH_CHECK_VALUE(sends.size() == receives.size(), "Rank ", rank,
                    " has in one call ", sends.size(), " sends to itself and ",
                    receives.size(), " receives from itself.");
  for (size_t i = 0; i < sends.size(); ++i) {
    TORCH_CHECK_VALUE(sends[i].bytes == receives[i].bytes, "Rank ", rank,
                      " sends ", sends[i].bytes,
                      " bytes to itself, and receives ", receives[i].bytes,
                      ".");
  }
}

void Transfers::copyToSelf(orStream_t stream,
                           std::span<const Transfer> transfers) const {
  const auto sends = selectTransfers(transfers, true, mailboxes_->rank);
  const auto receives = selectTransfers(transfers, false, mailboxes_->rank);
  for (size_t i = 0; i < sends.size(); ++i) {
    if (sends[i].bytes == 0) continue;
    check(orMemcpyAsync(receives[i].data, sends[i].data, sends[i].bytes,
                        orMemcpyDeviceToDevice, stream));
  }
}

// [distributed.transfer.enqueue] A transfer of zero bytes has a chunk too, because the chunk carries the size.
void Transfers::enqueue(orStream_t stream,
                        std::span<const Transfer> transfers) {
  copyToSelf(stream, transfers);
  std::vector<Transfer> others;
  for (const Transfer& transfer : transfers) {
    if (transfer.peer == mailboxes_->rank) continue;
    others.push_back(transfer);
    join_(stream, this->stream(transfer.is_send, transfer.peer));
  }
  takeTurns(others, [this](const Transfer& transfer, size_t done) {
    const size_t size = std::min(kSlotBytes, transfer.bytes - done);
    const orStream_t pair = this->stream(transfer.is_send, transfer.peer);
    if (transfer.is_send) {
      send(pair, transfer, done, size);
    } else {
      receive(pair, transfer, done, size);
    }
    return size;
  });
  for (const Transfer& transfer : others) {
    join_(this->stream(transfer.is_send, transfer.peer), stream);
  }
}

// [distributed.transfer.send] A sender waits until its slot is free, which held the fourth chunk before.
void Transfers::send(orStream_t stream, const Transfer& transfer, size_t done,
                     size_t size) {
  const int peer = transfer.peer;
  const uint32_t chunk = mailboxes_->sent[peer]++;
  check(orStreamWaitValue32(stream, mailboxes_->takenNumber(peer),
                            chunk + 1 - static_cast<uint32_t>(kSlots)));
  const char* data = static_cast<const char*>(transfer.data);
  check(launch(
      stream, "send",
      [self = mailboxes_, from = onDevice(data) + done, size, peer, chunk,
       parcel = Parcel{transfer.bytes, transfer.type}, is_first = done == 0] {
        if (self->isAborted()) return;
        Mailbox& mailbox = self->of(peer);
        if (is_first) {
          mailbox.parcels[self->rank][chunk % kSlots] = parcel;
        }
        if (size) std::memcpy(self->slot(peer, self->rank, chunk), from, size);
        self->signal(peer, mailbox.received[self->rank], chunk + 1);
      }));
}

// [distributed.transfer.disagree] A receiver that is given another size or type aborts itself, and lets the sender go on.
static bool parcelsAgree(Mailboxes& mailboxes, int peer, uint32_t chunk,
                         const Parcel& receives, uint64_t number) {
  const Parcel sends =
      mailboxes.of(mailboxes.rank).parcels[peer][chunk % kSlots];
  std::string problem =
      findDisagreement(peer, sends, mailboxes.rank, receives, number);
  if (problem.empty()) return true;
  mailboxes.fail(std::move(problem));
  mailboxes.signal(peer, mailboxes.of(peer).taken[mailboxes.rank],
                   chunk + kFarAhead);
  return false;
}

// [distributed.transfer.receive] The receiver waits for a chunk, takes it, and gives the slot back.
void Transfers::receive(orStream_t stream, const Transfer& transfer,
                        size_t done, size_t size) {
  const int peer = transfer.peer;
  const uint32_t chunk = mailboxes_->received[peer]++;
  if (done == 0) ++receives_[peer];
  check(
      orStreamWaitValue32(stream, mailboxes_->receivedNumber(peer), chunk + 1));
  char* data = static_cast<char*>(transfer.data);
  check(launch(
      stream, "receive",
      [self = mailboxes_, to = onDevice(data) + done, size, peer, chunk,
       parcel = Parcel{transfer.bytes, transfer.type}, is_first = done == 0,
       number = receives_[peer]] {
        if (self->isAborted()) return;
        if (is_first && !parcelsAgree(*self, peer, chunk, parcel, number))
          return;
        if (size) std::memcpy(to, self->slot(self->rank, peer, chunk), size);
        self->signal(peer, self->of(peer).taken[self->rank], chunk + 1);
      }));
}

// [-]
}  // namespace openreg
