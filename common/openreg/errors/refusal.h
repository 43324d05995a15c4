// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/common/openreg/interface/openreg.h"

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

namespace openreg::hardware {

// [common.refusal] What a kernel said when it refused its arguments is told once, to a call that waits for its stream.
struct KernelRefusal {
  explicit KernelRefusal(std::string sentence)
      : sentence(std::move(sentence)) {}

  const std::string sentence;
  std::atomic<bool> is_told{false};
};

/// The first refusal that a stream or a recording knows of and that has not
/// been told. A stream takes over those of the recordings that it waits for.
class PendingRefusal {
 public:
  /// Keeps `refusal`, unless it is null or an earlier one is still kept.
  void keep(std::shared_ptr<KernelRefusal> refusal);
  /// Null if there is none, or if it has been told.
  std::shared_ptr<KernelRefusal> get() const;
  /// Throws the refusal, as the calling thread's last error, unless it was
  /// told.
  void tell();
  /// What `get` returns, which is then not kept any more.
  std::shared_ptr<KernelRefusal> take();

 private:
  /// Read by the host after it has waited; the worker that keeps a refusal
  /// does so before it counts the command as run.
  std::atomic<bool> is_kept_{false};
  mutable std::mutex mutex_;
  std::shared_ptr<KernelRefusal> kept_;
};

// [-]
}  // namespace openreg::hardware
