// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/distributed/process_group/joining_store.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <thread>
#include <utility>

namespace openreg {

// [distributed.store.poll] A rank polls the store, because nothing ends a wait inside it.
JoiningStore::JoiningStore(std::string prefix,
                           c10::intrusive_ptr<c10d::Store> store,
                           std::shared_ptr<Patience> patience)
    : PrefixStore(std::move(prefix), std::move(store)),
      patience_(std::move(patience)),
      timeout_(patience_->timeout.load()) {}

void JoiningStore::pollUntilNothing(
    const std::function<std::string()>& missing) const {
  const auto began = std::chrono::steady_clock::now();
  std::chrono::microseconds pause(100);
  for (auto key = missing(); !key.empty(); key = missing()) {
    TORCH_CHECK_WITH(DistBackendError,
                     !patience_->is_over && !Patience::is_over_for_all,
                     "The group was aborted before all of its ranks joined.");
    const auto limit = patience_->timeout.load();
    TORCH_CHECK_WITH(
        DistBackendError, std::chrono::steady_clock::now() - began < limit,
        "A rank of the group did not join within the timeout of ",
        limit.count(), " ms: its entry ", key,
        " is not in the store. A rank joins when it first uses one of its "
        "groups on a device.");
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, std::chrono::microseconds(20000));
  }
}

// [distributed.store.calls] What reads an entry waits for it first.
void JoiningStore::wait(const std::vector<std::string>& keys) {
  pollUntilNothing([&]() -> std::string {
    for (const auto& key : keys) {
      if (!check({key})) return key;
    }
    return "";
  });
}

void JoiningStore::wait(const std::vector<std::string>& keys,
                        const std::chrono::milliseconds&) {
  wait(keys);
}

std::vector<uint8_t> JoiningStore::get(const std::string& key) {
  wait({key});
  return PrefixStore::get(key);
}

c10::intrusive_ptr<JoiningStore> JoiningStore::below(std::string prefix) {
  return c10::make_intrusive<JoiningStore>(joinKey(prefix), store_, patience_);
}

c10::intrusive_ptr<c10d::Store> JoiningStore::clone() {
  return c10::make_intrusive<JoiningStore>(prefix_, store_->clone(), patience_);
}

// [-]
}  // namespace openreg
