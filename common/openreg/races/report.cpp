// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/common/openreg/races/races.h"

#include "torch_openreg/common/openreg/core/machine.h"
#include "torch_openreg/common/openreg/races/findings.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <sstream>

namespace openreg::hardware {
// [common.races.places] The two functions may change while another thread asks.
static std::mutex places_mutex;
static Places places;

static Places currentPlaces() {
  std::lock_guard lock(places_mutex);
  return places;
}

static std::string describe(int64_t place) {
  const Places known = currentPlaces();
  if (!place || !known.describe) return "";
  char text[512] = {};
  known.describe(place, text, sizeof(text));
  return text;
}

std::string atPlace(int64_t place) {
  const std::string text = describe(place);
  return text.empty() ? "" : " at " + text;
}

// [common.races.sides] A stream is named by the number that PyTorch gives it.
int64_t numberOf(orStream_t stream, const Device& device) {
  return stream == defaultOf(device) ? 0 : reinterpret_cast<int64_t>(stream);
}

std::string nameOfStream(int device, int64_t stream) {
  std::ostringstream text;
  if (stream) {
    text << "stream " << stream;
  } else {
    text << "the default stream";
  }
  text << " of openreg:" << device;
  return text.str();
}

static std::string streamOf(const orFoundCommand& command) {
  return command.device < 0 ? "the host"
                            : nameOfStream(command.device, command.stream);
}

static const char* verb(const orFoundCommand& command) {
  return command.is_write ? "writes" : "reads";
}

void setPlaces(Places next) {
  std::lock_guard lock(places_mutex);
  places = next;
}

int64_t placeHere() {
  const auto here = currentPlaces().here;
  return here ? here() : 0;
}

// [common.races.sentence] Which edge is missing depends on whether the memory had another owner, and on whether the host is one of the two.
std::string sentenceFor(const orFinding& race) {
  const orFoundCommand &first = race.other, &second = race.command;
  std::ostringstream text;
  if (race.was_freed) {
    text << "The memory was freed while " << streamOf(first)
         << " still used it, and handed out again; call "
            "tensor.record_stream(...) with "
         << streamOf(first) << " before the tensor of " << first.name
         << " is freed.";
    return text.str();
  }
  text << (second.device < 0 ? "The host " : "This stream ") << verb(second)
       << " what " << streamOf(first) << (first.is_write ? " wrote" : " read")
       << ", and nothing makes it wait; ";
  if (second.device < 0) {
    text << "synchronize " << streamOf(first);
  } else {
    text << "call wait_stream on " << streamOf(second) << " for "
         << streamOf(first);
  }
  const std::string place = describe(second.place);
  text << " before " << (place.empty() ? second.name : place) << ".";
  return text.str();
}

// [common.races.print] A report names the later command first, because the missing wait belongs there.
std::string reportOf(const orFinding& race) {
  const orFoundCommand &first = race.other, &second = race.command;
  std::ostringstream text;
  text << "openreg: race between " << first.name << " and " << second.name
       << '\n';
  for (const orFoundCommand& each : {second, first}) {
    const auto begin = static_cast<const char*>(each.pointer) -
                       static_cast<const char*>(race.block);
    text << "  " << each.name << atPlace(each.place) << " " << verb(each)
         << " bytes " << begin << " to " << begin + each.bytes << ", on "
         << streamOf(each) << '\n';
  }
  text << "  of the block of " << race.block_bytes << " bytes at " << race.block
       << ".\n  " << race.sentence << '\n';
  return text.str();
}

orStream_t defaultOf(const Device& device) {
  return machine().devices[device.index]->defaultStream();
}

// [common.races.exit] A test that passed by luck must not look as if it had passed.
static void endWithCode(int status, void*) {
  if (orIsForked()) return;  // They are the parent's.
  const size_t raced = findings().races();
  const size_t violated = findings().violations();
  if (status != 0 || raced + violated == 0) return;
  const auto count = [](size_t found, const char* one, const char* more) {
    if (found == 0) return;
    std::fprintf(stderr,
                 "openreg: %zu %s found; the process ends with code 66.\n",
                 found, found == 1 ? one : more);
  };
  count(raced, "race was", "races were");
  count(violated, "memory violation was", "memory violations were");
  std::cout.flush();
  std::fflush(nullptr);
  _exit(66);
}

void endWithCodeAfterFindings() { on_exit(&endWithCode, nullptr); }

// [common.races.start] All who announce accesses ask first whether a search has begun.
void start(Sanitizer sanitizer) {
  std::atomic_ref<int>{sanitizers}.fetch_or(sanitizer);
}

void stopRaces() { std::atomic_ref<int>{sanitizers}.fetch_and(~kRaces); }

// [-]
}  // namespace openreg::hardware
