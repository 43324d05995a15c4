// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/distributed/hosts/news.h"

#include "torch_openreg/chapters/distributed/communicator/background.h"

#include <ATen/ops/empty.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>
#include <utility>

namespace openreg {

// [distributed.hosts.news.tell] The first sentence of a rank counts, because later failures follow from the first.
struct News::State {
  explicit State(Exchange exchange) : exchange(std::move(exchange)) {}

  const Exchange exchange;
  std::mutex mutex;
  std::string sentence;
  std::atomic<bool> is_asking{false}, has_told{false};
};

static const std::string kNews = "news";
/// A tag that no message has.
constexpr int kNoTransfer = 1;

News::News(Exchange exchange, Engine pairs, std::vector<int> others)
    : state_(std::make_shared<State>(std::move(exchange))),
      pairs_(std::move(pairs)),
      others_(std::move(others)) {}

void News::tell(const std::string& sentence) {
  if (state_->has_told.exchange(true)) return;
  try {
    state_->exchange.publish(kNews, sentence);
  } catch (const std::exception&) {
    // Without the table, the others learn of it by their timeouts.
  }
}

// [distributed.hosts.news.told] A table on a host that is switched off may not answer, so no thread that must go on asks it.
std::string News::told() const {
  if (!state_->is_asking.exchange(true)) {
    runInBackground([state = state_] {
      try {
        if (state->exchange.has(kNews)) {
          std::string sentence = state->exchange.lookUp(kNews);
          const std::lock_guard lock(state->mutex);
          state->sentence = std::move(sentence);
        }
      } catch (const std::exception&) {
        // As above.
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(500));
      state->is_asking = false;
    });
  }
  const std::lock_guard lock(state_->mutex);
  return state_->sentence;
}

// [distributed.hosts.news.explain] An engine does not say whose connection broke, but refuses to receive from that rank.
std::string News::explain(const std::string& exception) const {
  for (int turn = 0; turn < 20; ++turn) {
    if (const std::string sentence = told(); !sentence.empty()) return sentence;
    for (int rank : others_) {
      try {
        std::vector<at::Tensor> nothing{at::empty({1}, at::kByte)};
        pairs_->recv(nothing, rank, kNoTransfer);
      } catch (const std::exception& error) {
        return brokenConnection(rank, error);
      }
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  return exception;
}

// [-]
}  // namespace openreg
