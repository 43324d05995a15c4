// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/distributed/communicators/communicator.h"

#include "torch_openreg/common/check.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <exception>
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

namespace {

// [distributed.communicator.bootstrap] No exception may pass through the library, so what the store throws waits beside it.
struct StoreBootstrap {
  c10::intrusive_ptr<c10d::Store> store;
  std::exception_ptr error;

  template <class Body>
  static orcclResult_t run(void* context, Body body) noexcept {
    auto& self = *static_cast<StoreBootstrap*>(context);
    try {
      body(*self.store);
      return orcclSuccess;
    } catch (...) {
      self.error = std::current_exception();
      return orcclSystemError;
    }
  }

  orcclBootstrap functions() {
    return {
        this,
        [](void* context, const char* key, const void* value, size_t bytes) {
          const auto* begin = static_cast<const uint8_t*>(value);
          return run(context, [&](c10d::Store& store) {
            store.set(key, std::vector<uint8_t>(begin, begin + bytes));
          });
        },
        [](void* context, const char* key, void* value, size_t capacity,
           size_t* bytes) {
          return run(context, [&](c10d::Store& store) {
            const auto found = store.get(key);
            *bytes = found.size();
            std::copy_n(found.begin(), std::min(capacity, *bytes),
                        static_cast<uint8_t*>(value));
          });
        }};
  }
};

// [distributed.communicator.class] The handle lives as long as the object, and the functions of the bootstrap with it.
class OrcclCommunicator final : public Communicator {
 public:
  OrcclCommunicator(int rank, int size, c10::intrusive_ptr<c10d::Store> store)
      : bootstrap_{std::move(store), nullptr} {
    const orcclBootstrap functions = bootstrap_.functions();
    check(orcclCommInitRank(&comm_, size, &functions, rank));
  }
  ~OrcclCommunicator() override { orcclCommDestroy(comm_); }
  orcclComm_t comm() const override { return comm_; }

  // [distributed.communicator.dispatch] This switch is the only place that knows the order of the library's arguments.
  void collective(orStream_t stream, const Collective& what) override {
    const auto& [func, type, op, root, bytes, number] = what.call;
    const size_t count = bytes / orcclTypeSize(type);
    void* const* ins = what.inputs.data();
    void* const* outs = what.outputs.data();
    void* const in = what.inputs.empty() ? nullptr : ins[0];
    void* const out = what.outputs.empty() ? nullptr : outs[0];
    switch (func) {
      case orcclFuncBroadcast:
        return check(
            orcclBroadcast(in ? in : out, count, type, root, comm_, stream));
      case orcclFuncAllReduce:
        return check(orcclAllReduce(in, out, count, type, op, comm_, stream));
      case orcclFuncReduce:
        return check(
            orcclReduce(in, out, count, type, op, root, comm_, stream));
      case orcclFuncAllGather:
        return check(orcclAllGather(in, outs, count, type, comm_, stream));
      case orcclFuncReduceScatter:
        return check(
            orcclReduceScatter(ins, out, count, type, op, comm_, stream));
      default:
        return check(orcclBarrier(comm_, stream));
    }
  }

  // [distributed.communicator.point-to-point] Only the end of a group is checked, because it repeats the first refusal of its calls.
  void pointToPoint(orStream_t stream, std::span<const P2POp> ops) override {
    orcclGroupStart();
    for (const auto& [is_send, peer, data, bytes, type] : ops) {
      const size_t count = bytes / orcclTypeSize(type);
      is_send ? orcclSend(data, count, type, peer, comm_, stream)
              : orcclRecv(data, count, type, peer, comm_, stream);
    }
    check(orcclGroupEnd());
  }

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
  void check(orcclResult_t result) {
    if (const auto error = std::exchange(bootstrap_.error, nullptr)) {
      std::rethrow_exception(error);
    }
    checkOrccl(result);
  }

  StoreBootstrap bootstrap_;
  orcclComm_t comm_ = nullptr;
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
