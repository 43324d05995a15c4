// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/common/openreg/tools/injection.h"

#include "torch_openreg/common/openreg/core/config.h"
#include "torch_openreg/common/openreg/core/failure.h"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <utility>

namespace openreg::hardware {
// [common.injection.number] A number is taken from the front of a part, and must fit.
template <class Number>
static bool take(std::string_view& text, Number* number) {
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, *number);
  if (error != std::errc{}) return false;
  text.remove_prefix(rest - text.data());
  return true;
}

static bool skip(std::string_view& text, std::string_view prefix) {
  if (text.substr(0, prefix.size()) != prefix) return false;
  text.remove_prefix(prefix.size());
  return true;
}

// [common.injection.part] What is left of a part after the last number is refused.
static bool parseCount(std::string_view text, bool can_persist, Fault* fault) {
  uint64_t count = 0;
  if (!take(text, &count) || count == 0) return false;
  if (text.empty()) {
    fault->at.insert(count);
    return true;
  }
  fault->from = std::min(fault->from, count);
  return can_persist && text == "+";
}

static bool parsePart(std::string_view part, Faults* faults, int* device) {
  for (const std::string kind : {"alloc", "copy", "launch", "create"}) {
    if (skip(part, kind + ":")) return parseCount(part, true, &(*faults)[kind]);
  }
  return skip(part, "lost:") && take(part, device) && skip(part, "@") &&
         parseCount(part, false, &(*faults)["lost:" + std::to_string(*device)]);
}

// [common.injection.parse] The whole order is parsed before any fault changes.
std::string parse(const char* order, int device_count, Faults* faults) {
  Faults parsed;
  std::string_view rest = order ? order : "";
  while (!rest.empty()) {
    const size_t comma = rest.find(',');
    const std::string part(rest.substr(0, comma));
    int device = 0;
    if (!parsePart(part, &parsed, &device) || comma + 1 == rest.size()) {
      return "The part '" + part +
             "' of the order cannot be read; it must be a list such as "
             "alloc:3,copy:2+,launch:10,lost:1@20.";
    }
    const bool is_loss = part.rfind("lost:", 0) == 0;
    if (is_loss && (device < 0 || device >= device_count)) {
      return "The part '" + part +
             "' of the order names openreg:" + std::to_string(device) +
             ", but this machine has " + std::to_string(device_count) +
             " openreg devices, numbered from 0.";
    }
    rest.remove_prefix(comma == rest.npos ? rest.size() : comma + 1);
  }
  *faults = std::move(parsed);
  return {};
}

// [common.injection.count] Two threads count one after the other, so each count is met by one call.
void Injection::set(Faults faults) {
  std::lock_guard lock(mutex_);
  armed_ = !faults.empty();
  faults_ = std::move(faults);
}

bool Injection::count(std::string_view kind) {
  std::lock_guard lock(mutex_);
  const auto fault = faults_.find(kind);
  return fault != faults_.end() && fault->second.due();
}

Injection& injection() {
  static Injection& injection = *new Injection(config().faults);
  return injection;
}

// [common.injection.create] All creations share one count, because a program makes few of each kind.
void countCreation(const char* what) {
  if (injection().isDue("create"))
    throw fail(orErrorMemoryAllocation, "The creation of ", what,
               " was made to fail, by order.");
}

// [-]
}  // namespace openreg::hardware
