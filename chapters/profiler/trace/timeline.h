// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/chapters/profiler/trace/kineto.h"
#include "torch_openreg/chapters/profiler/trace/recorder.h"

#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace openreg {

// [profiler.timeline] Records become slices: on the host's threads, and on the streams of each device.
class Timeline {
 public:
  using Type = libkineto::ActivityType;           ///< of a slice
  using Slice = libkineto::GenericTraceActivity;  ///< with a begin and an end

  /// `linked` finds PyTorch's slice of an operator or an annotation by its
  /// number. `clock_offset` leads from the driver's clock to PyTorch's.
  Timeline(const std::vector<Entry>& entries, std::set<Type> wanted,
           libkineto::getLinkedActivityCallback linked, int64_t clock_offset);

  /// Writes all slices to `logger`, which keeps pointers to them.
  void write(libkineto::ActivityLogger& logger, int64_t begin, int64_t end);
  /// The slices themselves, for PyTorch to own. Call once, after `write`.
  std::unique_ptr<libkineto::CpuTraceBuffer> takeSlices();
  /// The streams that have a track.
  std::vector<libkineto::ResourceInfo> tracks() const;

  // [profiler.timeline.state] A command is joined from three records under one number, and a graph from those of its nodes too.
 private:
  struct Command {
    const Entry* enqueued = nullptr;
    const Entry* call = nullptr;
    /// The last one: a graph ends after its nodes.
    const Entry* ended = nullptr;
  };

  void addHostSlice(const Entry& entry, bool has_command);
  void addDeviceSlice(const Entry& ended, const Command& command);
  void extendAnnotations(const orRecord& record, const Command& command);
  void addAnnotations();
  Slice& add(Type type, const std::string& name, const orRecord& record);
  /// Draws the arrow from the host's slice to the device's.
  static void setArrow(Slice& slice, uint64_t correlation, bool from_host);
  int trackOf(const orRecord& record);

  const std::vector<Entry>& entries_;
  const std::set<Type> wanted_;
  const libkineto::getLinkedActivityCallback linked_;
  const int64_t offset_;
  std::unique_ptr<libkineto::CpuTraceBuffer> slices_;
  /// The number of each stream's track, by device and handle.
  std::map<std::pair<int, orStream_t>, int> tracks_;
  /// What an annotation covers on one track, by annotation, device and track.
  std::map<std::tuple<uint64_t, int, int>, std::pair<int64_t, int64_t>> spans_;
};

// [-]
}  // namespace openreg
