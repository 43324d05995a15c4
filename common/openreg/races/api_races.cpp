// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/common/openreg/core/failure.h"
#include "torch_openreg/common/openreg/core/machine.h"
#include "torch_openreg/common/openreg/races/races.h"
#include "torch_openreg/common/openreg/tools/step_scheduler.h"

using namespace openreg::hardware;

// [common.api-races.announce] Announcements are ignored unless a sanitizer is on.
orError_t orAccessFlag(const int** flag) noexcept {
  if (!flag) return refuseNull(__func__);
  *flag = &sanitizers;
  return orSuccess;
}

static orError_t checkAccess(const orAccess& access) {
  if (access.dims < 0 ||
      (access.dims > 0 && (!access.sizes || !access.strides))) {
    return fail(orErrorInvalidValue, "An access of ", access.dims,
                " dimensions needs as many sizes and strides.");
  }
  for (int64_t d = 0; d < access.dims; ++d) {
    if (access.sizes[d] < 0 || access.strides[d] < 0)
      return fail(orErrorInvalidValue,
                  "An access has sizes and strides of 0 or more; dimension ", d,
                  " has ", access.sizes[d], " and ", access.strides[d], ".");
  }
  return orSuccess;
}

static Touch touchOf(orAccess access) {
  if (access.element_bytes == 0)
    access.element_bytes =
        races().bytesFrom(reinterpret_cast<uintptr_t>(access.pointer));
  return {Footprint(access), access.is_write != 0};
}

orError_t orAnnounceAccess(const orAccess* access) noexcept try {
  if (!access) {
    forgetAnnounced();
    return orSuccess;
  }
  if (orError_t error = checkAccess(*access)) return error;
  if (accessesAreWanted()) announce(touchOf(*access));
  return orSuccess;
} catch (...) {
  return failWithException();
}

// [common.api-races.host] What the host touches is compared at once, and what an allocator hands out is only noted.
orError_t orAnnounceHostAccess(const char* name,
                               const orAccess* access) noexcept try {
  if (!name || !access) return refuseNull(__func__);
  if (orError_t error = checkAccess(*access)) return error;
  if (!racesAreWanted()) return orSuccess;
  const Touch touch = touchOf(*access);
  if (touch.bytes.isEmpty()) return orSuccess;
  const auto launch =
      std::make_shared<const Launch>(Launch{name, placeHere(), {touch}});
  if (config().ordered && mayStep()) stepScheduler().hostTouches(launch);
  races().hostTouches(launch);
  return orSuccess;
} catch (...) {
  return failWithException();
}

orError_t orAnnounceBlock(const void* pointer, size_t bytes) noexcept try {
  const auto begin = reinterpret_cast<uintptr_t>(pointer);
  if (racesAreWanted()) races().handOut(begin, begin + bytes);
  return orSuccess;
} catch (...) {
  return failWithException();
}

// [common.api-races.find] Commands from before are not known, so the first ones that are cannot race with them.
orError_t orFindRaces(int is_on) noexcept try {
  if (orError_t error = enter()) return error;
  if (!is_on) {
    stopRaces();
    return orSuccess;
  }
  if (!racesAreWanted()) races().clear();
  start(kRaces);
  return orSuccess;
} catch (...) {
  return failWithException();
}

orError_t orVisitRaces(void (*visit)(const orRace*, void*), void* data) noexcept
    try {
  if (!visit) return refuseNull(__func__);
  races().visit(visit, data);
  return orSuccess;
} catch (...) {
  return failWithException();
}

orError_t orClearRaces() noexcept try {
  races().clearFound();
  return orSuccess;
} catch (...) {
  return failWithException();
}

orError_t orSetPlaces(int64_t (*here)(),
                      void (*describe)(int64_t, char*, size_t)) noexcept try {
  setPlaces({here, describe});
  return orSuccess;
} catch (...) {
  return failWithException();
}

// [common.api-races.order] Both belong to the calling thread.
orError_t orWatchOnly(int is_on) noexcept {
  int& depth = onlyWatches();
  depth = std::max(depth + (is_on ? 1 : -1), 0);
  return orSuccess;
}

orError_t orAnnounceSettled(const void* pointer, size_t bytes,
                            orStream_t stream) noexcept try {
  const auto begin = reinterpret_cast<uintptr_t>(pointer);
  if (racesAreWanted()) races().settle(begin, begin + bytes, stream);
  return orSuccess;
} catch (...) {
  return failWithException();
}

orError_t orAnnouncePeer() noexcept {
  waitsForPeer() = racesAreWanted();
  return orSuccess;
}

// [-]
