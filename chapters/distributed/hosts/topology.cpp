// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/distributed/hosts/topology.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>

namespace openreg {

// [distributed.hosts.identity.default] The driver opens a peer's memory through /proc, so boot, process namespace and user must agree.
std::string hostIdentity() {
  if (const char* declared = std::getenv("OPENREG_HOST_ID")) return declared;
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  char processes[64] = {};
  if (readlink("/proc/self/ns/pid", processes, sizeof(processes) - 1) < 0) {
    processes[0] = 0;
  }
  return boot + " " + processes + " user " + std::to_string(getuid());
}

// [distributed.hosts.topology.read] Publishing waits for nobody, and reading waits for everybody.
static std::string keyOf(int rank) { return "host/" + std::to_string(rank); }

void publishIdentity(int rank, const Exchange& exchange) {
  exchange.publish(keyOf(rank), hostIdentity());
}

Topology::Topology(int rank, int size, const Exchange& exchange)
    : own(rank), host_of(size) {
  std::vector<std::string> identities;
  for (int each = 0; each < size; ++each) {
    const std::string identity = exchange.lookUp(keyOf(each));
    const auto found =
        std::find(identities.begin(), identities.end(), identity);
    host_of[each] = static_cast<int>(found - identities.begin());
    if (found == identities.end()) {
      identities.push_back(identity);
      ranks_of.emplace_back();
    }
    ranks_of[host_of[each]].push_back(each);
  }
}

// [distributed.hosts.topology.ask] Each host's communicator numbers its ranks from 0.
int Topology::localRank(int rank) const {
  const auto& ranks = ranks_of[host_of[rank]];
  return static_cast<int>(std::find(ranks.begin(), ranks.end(), rank) -
                          ranks.begin());
}

std::vector<int> Topology::leaders() const {
  std::vector<int> leaders;
  for (const auto& ranks : ranks_of) leaders.push_back(ranks.front());
  return leaders;
}

size_t Topology::widest() const {
  size_t most = 0;
  for (const auto& ranks : ranks_of) most = std::max(most, ranks.size());
  return most;
}

size_t Topology::placeOf(int rank) const {
  return host_of[rank] * widest() + localRank(rank);
}

Exchange withPrefix(const Exchange& exchange, const std::string& prefix) {
  return {[exchange, prefix](const std::string& key, const std::string& value) {
            exchange.publish(prefix + key, value);
          },
          [exchange, prefix](const std::string& key) {
            return exchange.lookUp(prefix + key);
          },
          [exchange, prefix](const std::string& key) {
            return exchange.has(prefix + key);
          }};
}

// [-]
}  // namespace openreg
