// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/common/openreg/core/failure.h"
#include "torch_openreg/common/openreg/core/machine.h"
#include "torch_openreg/common/openreg/races/findings.h"
#include "torch_openreg/common/openreg/races/races.h"
#include "torch_openreg/common/openreg/tools/step_scheduler.h"

using namespace openreg::hardware;

// [common.api-races.announce] Announcements are ignored unless a sanitizer is on.
orError_t orAccessFlag(const int** flag) noexcept {
  return caught([&] {
    if (!flag) throw refuseNull("orAccessFlag");
    *flag = &sanitizers;
  });
}

static void checkAccess(const orAccess& access) {
  if (access.dims < 0 ||
      (access.dims > 0 && (!access.sizes || !access.strides))) {
    throw fail(orErrorInvalidValue, "An access of ", access.dims,
               " dimensions needs as many sizes and strides.");
  }
  for (int64_t d = 0; d < access.dims; ++d) {
    if (access.sizes[d] < 0 || access.strides[d] < 0)
      throw fail(orErrorInvalidValue,
                 "An access has sizes and strides of 0 or more; dimension ", d,
                 " has ", access.sizes[d], " and ", access.strides[d], ".");
  }
}

// [common.api-races.end] An access whose end is no address would be an empty one, or wrap around.
/// Whether the address behind the last element is one.
static bool hasEnd(const orAccess& access) {
  auto end = reinterpret_cast<uintptr_t>(access.pointer);
  bool is_beyond = __builtin_add_overflow(end, access.element_bytes, &end);
  for (int64_t d = 0; d < access.dims; ++d) {
    if (access.sizes[d] == 0) return true;
    uintptr_t step = access.sizes[d] - 1;
    is_beyond |= __builtin_mul_overflow(step, access.strides[d], &step);
    is_beyond |= __builtin_mul_overflow(step, access.element_bytes, &step);
    is_beyond |= __builtin_add_overflow(end, step, &end);
  }
  return !is_beyond;
}

static Touch touchOf(orAccess access) {
  if (access.element_bytes == 0)
    access.element_bytes =
        races().bytesFrom(reinterpret_cast<uintptr_t>(access.pointer));
  if (!hasEnd(access))
    throw fail(orErrorInvalidValue, "An access from ", access.pointer,
               " on ends behind the last address.");
  return {Footprint(access), access.is_write != 0};
}

// [common.api-races.access] The accesses of a launch are announced before it.
orError_t orAnnounceAccess(const orAccess* access) noexcept {
  return caught([&] {
    if (!access) return forgetAnnounced();
    checkAccess(*access);
    if (accessesAreWanted()) announce(touchOf(*access));
  });
}

// [common.api-races.host] What the host touches is compared at once, and what an allocator hands out is only noted.
orError_t orAnnounceHostAccess(const char* name,
                               const orAccess* access) noexcept {
  return caught([&] {
    if (!name || !access) throw refuseNull("orAnnounceHostAccess");
    checkAccess(*access);
    if (!racesAreWanted()) return;
    const Touch touch = touchOf(*access);
    if (touch.bytes.isEmpty()) return;
    const auto launch =
        std::make_shared<const Launch>(Launch{name, placeHere(), {touch}});
    if (config().ordered && mayStep()) stepScheduler().hostTouches(launch);
    races().hostTouches(launch);
  });
}

orError_t orAnnounceBlock(const void* pointer, size_t bytes) noexcept {
  return caught([&] {
    const auto begin = reinterpret_cast<uintptr_t>(pointer);
    if (racesAreWanted()) races().handOut(begin, begin + bytes);
  });
}

// [common.api-races.find] A search begins without a history, so a command that came before it races with none.
orError_t orFindRaces(int is_on) noexcept {
  return guarded([&] {
    if (!is_on) return stopRaces();
    if (!racesAreWanted()) races().clear();
    start(kRaces);
  });
}

orError_t orVisitFindings(void (*visit)(const orFinding*, void*),
                          void* data) noexcept {
  return unforked([&] {
    if (!visit) throw refuseNull("orVisitFindings");
    findings().visit(visit, data);
  });
}

orError_t orClearFindings() noexcept {
  return unforked([&] {
    findings().clear();
    races().forgetReported();
  });
}

orError_t orSetPlaces(int64_t (*here)(),
                      void (*describe)(int64_t, char*, size_t)) noexcept {
  return caught([&] { setPlaces({here, describe}); });
}

// [common.api-races.order] Whether a thread only watches, or waits for a peer, is a state of that thread.
orError_t orWatchOnly(int is_on) noexcept {
  int& depth = onlyWatches();
  depth = std::max(depth + (is_on ? 1 : -1), 0);
  return orSuccess;
}

orError_t orAnnounceSettled(const void* pointer, size_t bytes,
                            orStream_t stream) noexcept {
  return caught([&] {
    const auto begin = reinterpret_cast<uintptr_t>(pointer);
    if (!racesAreWanted()) return;
    races().settle(begin, begin + bytes, findStream(stream).handle);
  });
}

orError_t orAnnouncePeer() noexcept {
  waitsForPeer() = racesAreWanted();
  return orSuccess;
}

// [-]
