// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <c10/util/Exception.h>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace openreg {

// [distributed.store] A store whose waits end with the group, or at its time limit.
/// How long a group waits for ranks that have not joined. Any thread.
struct Patience {
  std::atomic<std::chrono::milliseconds> timeout;          ///< of a wait
  std::atomic<bool> is_over{false};                        ///< no wait goes on
  static inline std::atomic<bool> is_over_for_all{false};  ///< the process ends
};

/// The part of a group's store below `prefix`. `get` and `wait` throw a
/// c10::DistBackendError when the patience of the group ends.
class JoiningStore final : public c10d::PrefixStore {
 public:
  /// `patience` is that of the group, which may end it while a call waits.
  JoiningStore(std::string prefix, c10::intrusive_ptr<c10d::Store> store,
               std::shared_ptr<Patience> patience)
      : PrefixStore(std::move(prefix), std::move(store)),
        patience_(std::move(patience)) {
    timeout_ = patience_->timeout;
  }

  // [distributed.store.poll] A rank polls the store, because nothing ends a wait inside it.
  /// Calls `missing` until it returns an empty string. Otherwise that is the
  /// key for which this rank waits.
  void pollUntilNothing(const std::function<std::string()>& missing) const {
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
          "groups on a device, or in init_process_group if that gets a "
          "device_id.");
      std::this_thread::sleep_for(pause);
      pause = std::min(pause * 2, std::chrono::microseconds(20000));
    }
  }

  // [distributed.store.calls] What reads an entry waits for it first.
  void wait(const std::vector<std::string>& keys) override {
    pollUntilNothing([&]() -> std::string {
      for (const auto& key : keys) {
        if (!check({key})) return key;
      }
      return "";
    });
  }
  /// The time limit is that of the group.
  void wait(const std::vector<std::string>& keys,
            const std::chrono::milliseconds&) override {
    wait(keys);
  }
  std::vector<uint8_t> get(const std::string& key) override {
    wait({key});
    return PrefixStore::get(key);
  }
  /// Several keys at once would be a wait that nothing ends.
  bool hasExtendedApi() const override { return false; }
  const std::chrono::milliseconds& getTimeout() const noexcept override {
    return timeout_;
  }
  /// The part below a longer prefix.
  c10::intrusive_ptr<JoiningStore> below(std::string prefix) {
    return c10::make_intrusive<JoiningStore>(joinKey(prefix), store_,
                                             patience_);
  }
  c10::intrusive_ptr<c10d::Store> clone() override {
    return c10::make_intrusive<JoiningStore>(prefix_, store_->clone(),
                                             patience_);
  }

 private:
  const std::shared_ptr<Patience> patience_;
};

// [-]
}  // namespace openreg
