// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/profiler/trace/timeline.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>
#include <utility>

namespace openreg {
namespace {

using libkineto::ActivityType;
using Slice = libkineto::GenericTraceActivity;

// [profiler.timeline.names] A kernel must not be called what its operator is called, or tables would add the two up.
const char* directionOf(int kind) {
  constexpr const char* kNames[] = {"HtoH", "HtoD", "DtoH", "DtoD"};
  return kind >= orMemcpyHostToHost && kind <= orMemcpyDeviceToDevice
             ? kNames[kind]
             : "?";
}

std::string nameOnDevice(const Entry& entry) {
  switch (entry.record.operation) {
    case orOperationLaunch: {
      const size_t colons = entry.name.rfind("::");
      const size_t begin = colons == std::string::npos ? 0 : colons + 2;
      return entry.name.substr(begin) + "_kernel";
    }
    case orOperationCopy:
      return std::string("Memcpy ") + directionOf(entry.record.direction);
    case orOperationSet:
      return "Memset";
    default:
      return entry.name;
  }
}

// [profiler.timeline.types] Kineto's types decide what counts as the device's time: kernels, copies and memsets do.
/// A stream that records an event or waits for one is not busy, so these are
/// annotations of the stream.
ActivityType typeOnDevice(orOperation operation) {
  switch (operation) {
    case orOperationLaunch:
    case orOperationHostFunction:
      return ActivityType::CONCURRENT_KERNEL;
    case orOperationCopy:
      return ActivityType::GPU_MEMCPY;
    case orOperationSet:
      return ActivityType::GPU_MEMSET;
    default:
      return ActivityType::GPU_USER_ANNOTATION;
  }
}

// [profiler.timeline.state] A command is joined from three records under one number, and a graph from those of its nodes too.
struct Command {
  const Entry* enqueued = nullptr;
  const Entry* call = nullptr;
  /// The last one; the nodes of a graph end under its number, too.
  const Entry* ended = nullptr;
};

struct Timeline {
  const std::set<ActivityType>& wanted;
  const libkineto::getLinkedActivityCallback linked;
  const int64_t clock_offset;
  Trace trace{std::make_unique<libkineto::CpuTraceBuffer>(), {}};
  /// The number of each stream's track, by device and handle.
  std::map<std::pair<int, orStream_t>, int> tracks{};
  /// What an annotation covers on one track, by annotation, device and track.
  std::map<std::tuple<uint64_t, int, int>, std::pair<int64_t, int64_t>> spans{};

  // [profiler.timeline.join] A command that the profile saw enqueued has ended, because the recorder waited for it.
  void write(const std::vector<Entry>& entries) {
    std::unordered_map<uint64_t, Command> commands;
    for (const Entry& entry : entries) {
      if (!entry.record.correlation) continue;
      Command& command = commands[entry.record.correlation];
      if (entry.record.phase == orCommandEnqueued) command.enqueued = &entry;
      if (entry.record.phase == orCallReturns) command.call = &entry;
      if (entry.record.phase == orCommandEnds) command.ended = &entry;
    }
    for (const Entry& entry : entries) {
      const auto found = commands.find(entry.record.correlation);
      const bool whole = found != commands.end() && found->second.enqueued &&
                         found->second.ended;
      const bool drawn =
          whole && wanted.count(typeOnDevice(entry.record.operation));
      if (entry.record.phase == orCommandEnds) {
        if (drawn) addDeviceSlice(entry, found->second);
        if (whole) extendAnnotations(entry.record, found->second);
      } else if (entry.record.phase != orCommandEnqueued) {
        addHostSlice(entry, drawn);
      }
    }
    addAnnotations();
  }

  // [profiler.timeline.slice] PyTorch finds the device's time of an operator through the link of each slice.
  Slice& add(ActivityType type, const std::string& name,
             const orRecord& record) {
    trace.slices->emplace_activity(trace.slices->span, type, name);
    Slice& slice = *trace.slices->activities.back();
    slice.startTime = record.begin + clock_offset;
    slice.endTime = record.end + clock_offset;
    slice.id = static_cast<int32_t>(record.correlation);
    if (record.bytes) slice.addMetadata("bytes", record.bytes);
    if (record.correlation) {
      slice.addMetadata("correlation", record.correlation);
    }
    return slice;
  }

  /// The slice was made by the thread and in the operator of `origin`.
  void setOrigin(Slice& slice, const Origin& origin) {
    slice.threadId = origin.thread;
    if (origin.op) slice.linked = linked(static_cast<int32_t>(origin.op));
  }

  /// Draws the arrow from the host's slice to the device's.
  static void setArrow(Slice& slice, uint64_t correlation, bool from_host) {
    slice.flow.id = static_cast<uint32_t>(correlation);
    slice.flow.type = libkineto::kLinkAsyncCpuGpu;
    slice.flow.start = from_host;
  }

  // [profiler.timeline.host] Calls of the driver lie inside their operator, on the thread that made them.
  void addHostSlice(const Entry& entry, bool has_command) {
    const orRecord& record = entry.record;
    const ActivityType type = record.phase == orRangeEnds
                                  ? ActivityType::PRIVATEUSE1_DRIVER
                                  : ActivityType::PRIVATEUSE1_RUNTIME;
    if (!wanted.count(type)) return;
    Slice& slice = add(type, entry.name, record);
    setOrigin(slice, entry.origin);
    slice.device = libkineto::processId();
    slice.resource = slice.threadId;
    if (has_command) setArrow(slice, record.correlation, true);
  }

  // [profiler.timeline.device] A slice on a stream says how long its command had waited for the stream.
  int trackOf(const orRecord& record) {
    const std::pair key(record.device, record.stream);
    const auto found = tracks.find(key);
    if (found != tracks.end()) return found->second;
    orStream_t first = nullptr;
    orDeviceGetDefaultStream(&first, record.device);
    tracks.emplace(std::pair(record.device, first), 0);
    const auto before = std::count_if(
        tracks.begin(), tracks.end(),
        [&](const auto& track) { return track.first.first == record.device; });
    return tracks.emplace(key, static_cast<int>(before)).first->second;
  }

  void addDeviceSlice(const Entry& ended, const Command& command) {
    const orRecord& record = ended.record;
    Slice& slice =
        add(typeOnDevice(record.operation), nameOnDevice(ended), record);
    setOrigin(slice, command.enqueued->origin);
    slice.device = record.device;
    slice.resource = trackOf(record);
    slice.addMetadata("device", record.device);
    slice.addMetadata("stream", slice.resource);
    slice.addMetadata("queued ns",
                      record.begin - command.enqueued->record.begin);
    if (command.call && wanted.count(ActivityType::PRIVATEUSE1_RUNTIME)) {
      setArrow(slice, record.correlation, false);
    }
  }

  // [profiler.timeline.annotations] On a stream, an annotation spans what was enqueued inside it.
  void extendAnnotations(const orRecord& record, const Command& command) {
    constexpr auto kAnnotation = ActivityType::GPU_USER_ANNOTATION;
    const bool busy = typeOnDevice(record.operation) != kAnnotation;
    if (!busy || !wanted.count(kAnnotation)) return;
    for (uint64_t number : command.enqueued->origin.annotations) {
      const auto [span, is_new] = spans.try_emplace(
          {number, record.device, trackOf(record)}, record.begin, record.end);
      auto& [begin, end] = span->second;
      begin = std::min(begin, record.begin);
      end = std::max(end, record.end);
    }
  }

  void addAnnotations() {
    for (const auto& [key, span] : spans) {
      const auto [number, device, track] = key;
      const auto* annotation = linked(static_cast<int32_t>(number));
      if (!annotation) continue;
      orRecord record{};
      record.begin = span.first;
      record.end = span.second;
      Slice& slice =
          add(ActivityType::GPU_USER_ANNOTATION, annotation->name(), record);
      slice.id = static_cast<int32_t>(number);
      slice.device = device;
      slice.resource = track;
      slice.linked = annotation;
    }
  }
};

// [-]
}  // namespace

// [profiler.timeline.tracks] Streams are numbered as they appear; 0 is the default stream.
Trace makeTrace(const std::vector<Entry>& entries,
                const std::set<ActivityType>& wanted,
                libkineto::getLinkedActivityCallback linked,
                int64_t clock_offset, const libkineto::TraceSpan& span) {
  Timeline timeline{wanted, std::move(linked), clock_offset};
  timeline.trace.slices->span = span;
  timeline.trace.slices->gpuOpCount = 0;
  timeline.write(entries);
  for (const auto& [key, track] : timeline.tracks) {
    timeline.trace.tracks.push_back(
        {track, track, key.first,
         track ? "stream " + std::to_string(track) : "default stream"});
  }
  return std::move(timeline.trace);
}

// [-]
}  // namespace openreg
