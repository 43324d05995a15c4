// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/profiler/trace/timeline.h"

#include <algorithm>
#include <unordered_map>

namespace openreg {
namespace {

using SliceType = Timeline::Type;

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
SliceType typeOnDevice(orOperation operation) {
  switch (operation) {
    case orOperationLaunch:
    case orOperationHostFunction:
      return SliceType::CONCURRENT_KERNEL;
    case orOperationCopy:
      return SliceType::GPU_MEMCPY;
    case orOperationSet:
      return SliceType::GPU_MEMSET;
    default:
      return SliceType::GPU_USER_ANNOTATION;
  }
}

// [-]
}  // namespace

// [profiler.timeline.join] A command that the profile saw enqueued has ended, because the recorder waited for it.
Timeline::Timeline(const std::vector<Entry>& entries, std::set<Type> wanted,
                   libkineto::getLinkedActivityCallback linked,
                   int64_t clock_offset)
    : entries_(entries),
      wanted_(std::move(wanted)),
      linked_(std::move(linked)),
      offset_(clock_offset),
      slices_(std::make_unique<libkineto::CpuTraceBuffer>()) {
  slices_->gpuOpCount = 0;
}

void Timeline::write(libkineto::ActivityLogger& logger, int64_t begin,
                     int64_t end) {
  slices_->span = libkineto::TraceSpan(begin, end, "openreg");
  std::unordered_map<uint64_t, Command> commands;
  for (const Entry& entry : entries_) {
    if (!entry.record.correlation) continue;
    Command& command = commands[entry.record.correlation];
    if (entry.record.phase == orCommandEnqueued) command.enqueued = &entry;
    if (entry.record.phase == orCallReturns) command.call = &entry;
    if (entry.record.phase == orCommandEnds) command.ended = &entry;
  }
  for (const Entry& entry : entries_) {
    const auto found = commands.find(entry.record.correlation);
    const bool whole = found != commands.end() && found->second.enqueued &&
                       found->second.ended;
    const bool drawn =
        whole && wanted_.count(typeOnDevice(entry.record.operation));
    if (entry.record.phase == orCommandEnds) {
      if (drawn) addDeviceSlice(entry, found->second);
      if (whole) extendAnnotations(entry.record, found->second);
    } else if (entry.record.phase != orCommandEnqueued) {
      addHostSlice(entry, drawn);
    }
  }
  addAnnotations();
  for (const auto& slice : slices_->activities) logger.handleActivity(*slice);
}

// [profiler.timeline.slice] PyTorch finds the device's time of an operator through the link of each slice.
Timeline::Slice& Timeline::add(Type type, const std::string& name,
                               const orRecord& record) {
  slices_->emplace_activity(slices_->span, type, name);
  Slice& slice = *slices_->activities.back();
  slice.startTime = record.begin + offset_;
  slice.endTime = record.end + offset_;
  slice.id = static_cast<int32_t>(record.correlation);
  if (record.bytes) slice.addMetadata("bytes", record.bytes);
  if (record.correlation) {
    slice.addMetadata("correlation", record.correlation);
  }
  return slice;
}

void Timeline::setArrow(Slice& slice, uint64_t correlation, bool from_host) {
  slice.flow.id = static_cast<uint32_t>(correlation);
  slice.flow.type = libkineto::kLinkAsyncCpuGpu;
  slice.flow.start = from_host;
}

// [profiler.timeline.host] Calls of the driver lie inside their operator, on the thread that made them.
void Timeline::addHostSlice(const Entry& entry, bool has_command) {
  const orRecord& record = entry.record;
  const Type type = record.phase == orRangeEnds ? Type::PRIVATEUSE1_DRIVER
                                                : Type::PRIVATEUSE1_RUNTIME;
  if (!wanted_.count(type)) return;
  Slice& slice = add(type, entry.name, record);
  slice.device = libkineto::processId();
  slice.resource = slice.threadId = entry.origin.thread;
  if (entry.origin.op) {
    slice.linked = linked_(static_cast<int32_t>(entry.origin.op));
  }
  if (has_command) setArrow(slice, record.correlation, true);
}

// [profiler.timeline.device] A slice on a stream says how long its command had waited for the stream.
int Timeline::trackOf(const orRecord& record) {
  const std::pair key(record.device, record.stream);
  const auto found = tracks_.find(key);
  if (found != tracks_.end()) return found->second;
  orStream_t first = nullptr;
  orDeviceGetDefaultStream(&first, record.device);
  tracks_.emplace(std::pair(record.device, first), 0);
  const auto before = std::count_if(
      tracks_.begin(), tracks_.end(),
      [&](const auto& track) { return track.first.first == record.device; });
  return tracks_.emplace(key, static_cast<int>(before)).first->second;
}

void Timeline::addDeviceSlice(const Entry& ended, const Command& command) {
  const orRecord& record = ended.record;
  const Origin& origin = command.enqueued->origin;
  Slice& slice =
      add(typeOnDevice(record.operation), nameOnDevice(ended), record);
  slice.device = record.device;
  slice.resource = trackOf(record);
  slice.threadId = origin.thread;
  if (origin.op) slice.linked = linked_(static_cast<int32_t>(origin.op));
  slice.addMetadata("device", record.device);
  slice.addMetadata("stream", slice.resource);
  slice.addMetadata("queued ns", record.begin - command.enqueued->record.begin);
  if (command.call && wanted_.count(Type::PRIVATEUSE1_RUNTIME)) {
    setArrow(slice, record.correlation, false);
  }
}

// [profiler.timeline.annotations] On a stream, an annotation spans what was enqueued inside it.
void Timeline::extendAnnotations(const orRecord& record,
                                 const Command& command) {
  const bool busy = typeOnDevice(record.operation) != Type::GPU_USER_ANNOTATION;
  if (!busy || !wanted_.count(Type::GPU_USER_ANNOTATION)) return;
  for (uint64_t number : command.enqueued->origin.annotations) {
    const auto [span, is_new] = spans_.try_emplace(
        {number, record.device, trackOf(record)}, record.begin, record.end);
    auto& [begin, end] = span->second;
    begin = std::min(begin, record.begin);
    end = std::max(end, record.end);
  }
}

void Timeline::addAnnotations() {
  for (const auto& [key, span] : spans_) {
    const auto [number, device, track] = key;
    const auto* annotation = linked_(static_cast<int32_t>(number));
    if (!annotation) continue;
    orRecord record{};
    record.begin = span.first;
    record.end = span.second;
    Slice& slice = add(Type::GPU_USER_ANNOTATION, annotation->name(), record);
    slice.id = static_cast<int32_t>(number);
    slice.device = device;
    slice.resource = track;
    slice.linked = annotation;
  }
}

// [profiler.timeline.tracks] Streams are numbered as they appear; 0 is the default stream.
std::vector<libkineto::ResourceInfo> Timeline::tracks() const {
  std::vector<libkineto::ResourceInfo> infos;
  for (const auto& [key, track] : tracks_) {
    infos.emplace_back(libkineto::ResourceInfo{
        track, track, key.first,
        track ? "stream " + std::to_string(track) : "default stream"});
  }
  return infos;
}

std::unique_ptr<libkineto::CpuTraceBuffer> Timeline::takeSlices() {
  return std::move(slices_);
}

// [-]
}  // namespace openreg
