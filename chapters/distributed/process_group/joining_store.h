// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
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
               std::shared_ptr<Patience> patience);
  /// The part below a longer prefix.
  c10::intrusive_ptr<JoiningStore> below(std::string prefix);
  /// Calls `missing` until it returns an empty string. Otherwise that is the
  /// key for which this rank waits.
  void pollUntilNothing(const std::function<std::string()>& missing) const;

  c10::intrusive_ptr<c10d::Store> clone() override;
  std::vector<uint8_t> get(const std::string& key) override;
  void wait(const std::vector<std::string>& keys) override;
  /// The time limit is that of the group.
  void wait(const std::vector<std::string>& keys,
            const std::chrono::milliseconds& timeout) override;
  /// Several keys at once would be a wait that nothing ends.
  bool hasExtendedApi() const override { return false; }
  const std::chrono::milliseconds& getTimeout() const noexcept override {
    return timeout_;
  }

 private:
  const std::shared_ptr<Patience> patience_;
  const std::chrono::milliseconds timeout_;
};

// [-]
}  // namespace openreg
