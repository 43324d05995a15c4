// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/distributed/communicator/communicator.h"

#include "torch_openreg/chapters/distributed/communicator/mailbox.h"
#include "torch_openreg/chapters/distributed/communicator/pipeline.h"
#include "torch_openreg/chapters/distributed/communicator/plans.h"
#include "torch_openreg/chapters/distributed/communicator/reduce.h"
#include "torch_openreg/chapters/distributed/communicator/transfer.h"
#include "torch_openreg/common/check.h"

#include <c10/util/Exception.h>

#include <utility>

namespace openreg {
namespace {

// [distributed.communicator.class] A member of a group has mailboxes, a pipeline for collectives, and transfers.
class Communicator final : public Collectives {
 public:
  Communicator(std::shared_ptr<Mailboxes> mailboxes, Exchange exchange)
      : mailboxes_(std::move(mailboxes)),
        exchange_(std::move(exchange)),
        pipeline_(mailboxes_),
        transfers_(mailboxes_) {}
  ~Communicator() override { Mailboxes::leave(mailboxes_); }
  void publish() { mailboxes_->publish(exchange_); }

  int rank() const override { return mailboxes_->rank; }
  int size() const override { return mailboxes_->size; }

  void barrier(orStream_t stream) override;
  void broadcast(orStream_t stream, void* data, size_t bytes, int root,
                 NumberType type) override;
  void allReduce(orStream_t stream, void* output, const void* input,
                 size_t count, NumberType type, Reduction reduction) override;
  void reduce(orStream_t stream, void* output, const void* input, size_t count,
              NumberType type, Reduction reduction, int root) override;
  void allGather(orStream_t stream, std::span<void* const> outputs,
                 const void* input, size_t bytes, NumberType type) override;
  void reduceScatter(orStream_t stream, void* output,
                     std::span<const void* const> inputs, size_t count,
                     NumberType type, Reduction reduction) override;
  void transfer(orStream_t stream,
                std::span<const Transfer> transfers) override;
  orStream_t transferStream(bool is_send, int peer) override;

  void abort() noexcept override { mailboxes_->abort(); }
  bool isAborted() const noexcept override { return mailboxes_->isAborted(); }
  std::shared_ptr<const std::atomic<bool>> abortedFlag() const override {
    return {mailboxes_, &mailboxes_->abortedFlag()};
  }
  std::string problem() const override { return mailboxes_->problem(); }
  std::string endedPeer() const override { return mailboxes_->endedPeer(); }

  // [distributed.communicator.private] A call that fails halfway would leave this rank out of step, so it aborts.
 private:
  /// Calls `enqueue` when the group is connected.
  template <class Enqueue>
  void inGroup(orStream_t stream, Enqueue enqueue);
  void enqueue(orStream_t stream, Plan plan);

  const std::shared_ptr<Mailboxes> mailboxes_;
  const Exchange exchange_;
  Pipeline pipeline_;
  Transfers transfers_;
};

template <class Enqueue>
void Communicator::inGroup(orStream_t stream, Enqueue enqueue) {
  if (isAborted()) return;
  checkNotCaptured(stream);
  mailboxes_->connect(exchange_);
  try {
    enqueue();
  } catch (...) {
    abort();
    throw;
  }
}

// [distributed.communicator.barrier] A barrier is a collective without data.
void Communicator::enqueue(orStream_t stream, Plan plan) {
  inGroup(stream, [&] { pipeline_.enqueue(stream, std::move(plan)); });
}

void Communicator::barrier(orStream_t stream) { enqueue(stream, Plan{}); }

// [distributed.communicator.move] A collective that moves bytes is a plan and nothing else.
void Communicator::broadcast(orStream_t stream, void* data, size_t bytes,
                             int root, NumberType type) {
  checkRank("root", root);
  enqueue(stream, planBroadcast(*mailboxes_, data, bytes, root, type));
}

void Communicator::allGather(orStream_t stream, std::span<void* const> outputs,
                             const void* input, size_t bytes, NumberType type) {
  checkParts("all_gather", "outputs", outputs.size());
  enqueue(stream, planAllGather(*mailboxes_, outputs, input, bytes, type));
}

// [distributed.communicator.reduce] One rank or all of them want the result; the work is the same.
void Communicator::allReduce(orStream_t stream, void* output, const void* input,
                             size_t count, NumberType type,
                             Reduction reduction) {
  checkReduction(type, reduction);
  const Signature signature{
      .operation = Operation::all_reduce, .type = type, .reduction = reduction};
  enqueue(stream,
          planReduction(*mailboxes_, output, input, count, signature, true));
}

void Communicator::reduce(orStream_t stream, void* output, const void* input,
                          size_t count, NumberType type, Reduction reduction,
                          int root) {
  checkRank("root", root);
  checkReduction(type, reduction);
  const Signature signature{.operation = Operation::reduce,
                            .type = type,
                            .reduction = reduction,
                            .root = root};
  enqueue(stream, planReduction(*mailboxes_, output, input, count, signature,
                                rank() == root));
}

void Communicator::reduceScatter(orStream_t stream, void* output,
                                 std::span<const void* const> inputs,
                                 size_t count, NumberType type,
                                 Reduction reduction) {
  checkParts("reduce_scatter", "inputs", inputs.size());
  checkReduction(type, reduction);
  enqueue(stream, planReduceScatter(*mailboxes_, output, inputs, count, type,
                                    reduction));
}

// [distributed.communicator.transfer] A transfer needs only the two ranks that call it.
void Communicator::transfer(orStream_t stream,
                            std::span<const Transfer> transfers) {
  for (const Transfer& transfer : transfers) {
    checkPeer(transfer.is_send, transfer.peer);
  }
  checkTransfersToSelf(rank(), transfers);
  inGroup(stream, [&] { transfers_.enqueue(stream, transfers); });
}

orStream_t Communicator::transferStream(bool is_send, int peer) {
  checkPeer(is_send, peer);
  return transfers_.stream(is_send, peer);
}

// [-]
}  // namespace

// [distributed.communicator.make] Publishing waits for nobody, so groups may be made in different orders.
std::shared_ptr<Collectives> makeCommunicator(int rank, int size, int device,
                                              Exchange exchange,
                                              uint32_t first_number) {
  TORCH_CHECK_VALUE(size >= 1 && size <= kMaxRanks,
                    "A group on one host has 1 to ", kMaxRanks, " ranks; ",
                    size, " were asked for.");
  TORCH_CHECK_VALUE(rank >= 0 && rank < size, "Rank ", rank,
                    " is not in a group with the ranks 0 to ", size - 1, ".");
  auto mailboxes =
      std::make_shared<Mailboxes>(rank, size, device, first_number);
  auto communicator =
      std::make_shared<Communicator>(mailboxes, std::move(exchange));
  communicator->publish();
  return communicator;
}

// [-]
}  // namespace openreg
