// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/chapters/distributed/hosts/engine.h"

#include <memory>
#include <string>
#include <vector>

namespace openreg {

// [distributed.hosts.news] What one rank has found out about the group, all ranks are told.
/// Sentences about ranks that cannot go on, in the table of the group. All
/// functions may be called on any thread.
class News {
 public:
  /// `pairs` is an engine of all ranks; `others` are the leaders of the other
  /// hosts.
  News(Exchange exchange, Engine pairs, std::vector<int> others);

  /// Tells all ranks, unless this rank has told them something before.
  void tell(const std::string& sentence);
  /// What a rank has told, or nothing. Never waits: a thread asks the table,
  /// twice a second at most.
  std::string told() const;
  /// A sentence for an exception of the engine of the leaders: what a rank has
  /// told, or else to which leaders the connection is broken.
  std::string explain(const std::string& exception) const;

 private:
  struct State;

  const std::shared_ptr<State> state_;
  const Engine pairs_;
  const std::vector<int> others_;
};

// [-]
}  // namespace openreg
