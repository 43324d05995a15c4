// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/distributed/communicators/communicator.h"

#include "torch_openreg/common/check.h"

#include <c10/util/Exception.h>

#include <cstring>
#include <utility>
#include <vector>

namespace openreg {

// [distributed.communicator.check] The driver's errors keep the types that they have everywhere else.
void checkOrccl(orcclResult_t result) {
  if (result == orcclSuccess) return;
  const std::string sentence = orcclGetLastError();
  if (result == orcclUnhandledDriverError) check(orPeekAtLastError());
  TORCH_CHECK_VALUE(result != orcclInvalidArgument, sentence);
  TORCH_CHECK_WITH(DistBackendError, result != orcclRemoteError, sentence);
  TORCH_CHECK(false, sentence);
}

// [-]
namespace {

// [distributed.communicator.class] Each rank leaves its card in PyTorch's store, and takes those of the others when its first call needs them.
class OrcclCommunicator final : public Communicator {
 public:
  OrcclCommunicator(int rank, int size, c10::intrusive_ptr<c10d::Store> store)
      : rank_(rank), size_(size), store_(std::move(store)) {
    orcclCard_t card;
    checkOrccl(orcclCommInitRank(&comm_, size, rank, &card));
    const auto* begin = reinterpret_cast<const uint8_t*>(&card);
    try {
      store_->set(keyOf(rank), std::vector(begin, begin + sizeof(card)));
    } catch (...) {
      orcclCommDestroy(comm_);
      throw;
    }
  }
  ~OrcclCommunicator() override { orcclCommDestroy(comm_); }
  orcclComm_t comm() const override { return comm_; }

  // [distributed.communicator.connect] An aborted communicator waits for no rank, and the library then enqueues nothing.
  void connect() {
    if (is_connected_ || problem()) return;
    std::vector<orcclCard_t> cards(size_);
    for (int rank = 0; rank < size_; ++rank) {
      if (rank == rank_) continue;
      const auto found = store_->get(keyOf(rank));
      TORCH_CHECK(found.size() == sizeof(orcclCard_t), "Rank ", rank,
                  " has published ", found.size(),
                  " bytes where its mailbox should be described in ",
                  sizeof(orcclCard_t), ".");
      std::memcpy(&cards[rank], found.data(), found.size());
    }
    checkOrccl(orcclCommConnect(comm_, cards.data()));
    is_connected_ = true;
  }

  // [distributed.communicator.dispatch] This switch is the only place that knows the order of the library's arguments.
  void collective(orStream_t stream, const Collective& what) override {
    connect();
    const auto& [func, type, op, root, bytes, number] = what.call;
    const size_t count = bytes / orcclTypeSize(type);
    void* const* ins = what.inputs.data();
    void* const* outs = what.outputs.data();
    void* const in = what.inputs.empty() ? nullptr : ins[0];
    void* const out = what.outputs.empty() ? nullptr : outs[0];
    switch (func) {
      case orcclFuncBroadcast:
        return checkOrccl(
            orcclBroadcast(in ? in : out, count, type, root, comm_, stream));
      case orcclFuncAllReduce:
        return checkOrccl(
            orcclAllReduce(in, out, count, type, op, comm_, stream));
      case orcclFuncReduce:
        return checkOrccl(
            orcclReduce(in, out, count, type, op, root, comm_, stream));
      case orcclFuncAllGather:
        return checkOrccl(orcclAllGather(in, outs, count, type, comm_, stream));
      case orcclFuncReduceScatter:
        return checkOrccl(
            orcclReduceScatter(ins, out, count, type, op, comm_, stream));
      default:
        return checkOrccl(orcclBarrier(comm_, stream));
    }
  }

  // [distributed.communicator.point-to-point] Only the end of a group is checked, because it repeats the first refusal of its calls.
  void pointToPoint(orStream_t stream, std::span<const P2POp> ops) override {
    connect();
    orcclGroupStart();
    for (const auto& [is_send, peer, data, bytes, type] : ops) {
      const size_t count = bytes / orcclTypeSize(type);
      is_send ? orcclSend(data, count, type, peer, comm_, stream)
              : orcclRecv(data, count, type, peer, comm_, stream);
    }
    checkOrccl(orcclGroupEnd());
  }

  // [distributed.communicator.problem] The library's codes become the answers that the watchdog asks for.
  void abort(const std::string& reason) noexcept override {
    orcclCommAbort(comm_, reason.c_str());
  }
  std::optional<std::string> problem() const override {
    orcclResult_t error = orcclSuccess;
    orcclCommGetAsyncError(comm_, &error);
    if (!error) return std::nullopt;
    return error == orcclInvalidUsage ? orcclGetLastError() : "";
  }
  std::string endedPeer() const override {
    return orcclCommCheckPeers(comm_) ? orcclGetLastError() : "";
  }

 private:
  static std::string keyOf(int rank) { return c10::str("mailbox/", rank); }

  const int rank_, size_;
  const c10::intrusive_ptr<c10d::Store> store_;
  orcclComm_t comm_ = nullptr;
  bool is_connected_ = false;
};

// [-]
}  // namespace

// [distributed.communicator.make] Making a communicator waits for no other rank.
std::shared_ptr<Communicator> makeCommunicator(
    int rank, int size, c10::intrusive_ptr<c10d::Store> store) {
  return std::make_shared<OrcclCommunicator>(rank, size, std::move(store));
}

// [-]
}  // namespace openreg
