// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/chapters/profiler/trace/recorder.h"

// [profiler.kineto] Kineto's headers show an interface only with these two macros.
/// PyTorch hides its registry of profilers without the first. The second makes
/// fmt a library of headers: the wheel's libraries have fmt inside, and do not
/// export it.
#define USE_KINETO
#define FMT_HEADER_ONLY  ///< see USE_KINETO

#include <torch/csrc/profiler/standalone/privateuse1_profiler.h>

#include <libkineto.h>
#include <output_base.h>

#include <memory>
#include <set>
#include <vector>

namespace openreg {

// [profiler.timeline] Records become slices: on the host's threads, and on the streams of each device.
/// What a profile leaves.
struct Trace {
  /// Slices of time, for PyTorch to own.
  std::unique_ptr<libkineto::CpuTraceBuffer> slices;
  /// The streams that have a track.
  std::vector<libkineto::ResourceInfo> tracks;
};

/// The trace of these entries, in the time of `span`; slices of types that are
/// not `wanted` are left out. `linked` finds PyTorch's slice of an operator or
/// an annotation by its number. `clock_offset` leads from the driver's clock to
/// PyTorch's.
Trace makeTrace(const std::vector<Entry>& entries,
                const std::set<libkineto::ActivityType>& wanted,
                libkineto::getLinkedActivityCallback linked,
                int64_t clock_offset, const libkineto::TraceSpan& span);

// [-]
}  // namespace openreg
