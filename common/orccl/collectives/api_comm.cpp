// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/common/orccl/collectives/orccl_comm.h"

#include <string>

using namespace openreg::orccl;

// [common.orccl.api.comm.init] Making a communicator never blocks, so groups may be made in different orders.
orcclResult_t orcclCommInitRank(orcclComm_t* comm, int nranks, int rank,
                                orcclCard_t* card) noexcept {
  return guarded([&] {
    require(nranks >= 1 && nranks <= kMaxRanks, orcclInvalidArgument,
            "A group on one host has 1 to ", kMaxRanks, " ranks; ", nranks,
            " were asked for.");
    require(rank >= 0 && rank < nranks, orcclInvalidArgument, "Rank ", rank,
            " is not in a group with the ranks 0 to ", nranks - 1, ".");
    auto shared = std::make_shared<Comm>(rank, nranks);
    auto made = std::make_unique<orcclComm>(shared);
    shared->boxes.allocate();
    try {
      *card = shared->peers.card();
    } catch (...) {
      Comm::leave(std::move(shared));
      throw;
    }
    *comm = made.release();
  });
}

orcclResult_t orcclCommConnect(orcclComm_t comm,
                               const orcclCard_t* cards) noexcept {
  return guarded([&] { find(comm).shared->peers.connect(cards); });
}

orcclResult_t orcclCommDestroy(orcclComm_t comm) noexcept {
  return guarded([&] {
    Comm::leave(find(comm).shared);
    delete comm;
  });
}

// [common.orccl.api.comm.abort] Functions that another thread may call use only the shared part of a communicator.
orcclResult_t orcclCommAbort(orcclComm_t comm, const char* reason) noexcept {
  return guarded([&] { find(comm).shared->abort(reason); });
}

orcclResult_t orcclCommGetAsyncError(orcclComm_t comm,
                                     orcclResult_t* error) noexcept {
  return guarded([&] {
    *error = orcclSuccess;
    const Ending& ending = *find(comm).shared->ending;
    if (!ending.isAborted()) return;
    const std::string disagreement = ending.disagreement();
    *error = disagreement.empty()
                 ? fail(orcclAborted, ending.reason().c_str())
                 : fail(orcclInvalidUsage, disagreement.c_str());
  });
}

orcclResult_t orcclCommCheckPeers(orcclComm_t comm) noexcept {
  return guarded([&] {
    const std::string ended = find(comm).shared->peers.ended();
    require(ended.empty(), orcclRemoteError, ended);
  });
}

// [common.orccl.api.request.kernels] One kernel at the end of the operation notes whether it was done, and one behind each wait refuses if it was not.
struct orcclRequest {
  struct Moment {
    const std::string name;
    const std::shared_ptr<Ending> ending;
    std::atomic<bool> was_done{false};
  };
  const std::shared_ptr<Moment> moment;
};

// [common.orccl.api.request.calls] If an operation is already known to be done, its check enqueues no kernel.
orcclResult_t orcclRequestRecord(orcclRequest_t* request, const char* name,
                                 orcclComm_t comm, orStream_t stream) noexcept {
  return guarded([&] {
    auto moment =
        std::make_shared<orcclRequest::Moment>(name, find(comm).shared->ending);
    check(openreg::launch(stream, "end", [moment] {
      moment->was_done = !moment->ending->isAborted();
    }));
    *request = new orcclRequest{std::move(moment)};
  });
}

orcclResult_t orcclRequestCheck(orcclRequest_t request,
                                orStream_t stream) noexcept {
  return guarded([&] {
    if (request->moment->was_done) return;
    check(openreg::launch(stream, "wait", [moment = request->moment] {
      if (moment->was_done) return;
      std::string cause = moment->ending->reason();
      if (cause.empty()) cause = moment->ending->disagreement();
      throw openreg::Refusal(moment->name +
                             " has no result, because its group failed" +
                             (cause.empty() ? "." : ". " + cause));
    }));
  });
}

orcclResult_t orcclRequestFree(orcclRequest_t request) noexcept {
  delete request;
  return orcclSuccess;
}

// [-]
