// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/graphs/capture/captured_graph.h"
#include "torch_openreg/chapters/device/memory/allocator.h"
#include "torch_openreg/chapters/device/streams/stream.h"
#include "torch_openreg/chapters/hooks/host_memory.h"
#include "torch_openreg/common/check.h"
#include "torch_openreg/common/waiting.h"

#include <atomic>
#include <exception>
#include <utility>

namespace openreg {
// [graphs.pool.number] A graph's own pool and a shared one have their numbers in different places.
static std::atomic<c10::CaptureId_t> last_pool{0};

c10::MempoolId_t newPoolHandle() { return {0, ++last_pool}; }

// [graphs.graph.modes] A capture without a mode is as strict as that of `torch.cuda.graph`.
static orStreamCaptureMode modeOf(at::GraphCaptureMode mode) {
  switch (mode) {
    case at::GraphCaptureMode::ThreadLocal:
      return orStreamCaptureModeThreadLocal;
    case at::GraphCaptureMode::Relaxed:
      return orStreamCaptureModeRelaxed;
    default:
      return orStreamCaptureModeGlobal;
  }
}

static uint64_t captureOf(const c10::Stream& stream) {
  uint64_t id = 0;
  orStreamGetCaptureId(nativeStream(stream), &id);
  return id;
}

// [graphs.graph.begin] The driver captures first, because its number of the capture says which requests are for the pool.
void CapturedGraph::capture_begin(c10::MempoolId_t pool,
                                  at::GraphCaptureMode mode) {
  TORCH_CHECK(!stream_, "This graph ",
              capture_ ? "is being captured" : "has been captured",
              " already; call reset() before the next capture.");
  const c10::Stream stream = currentStream(-1);
  TORCH_CHECK(stream != defaultStream(-1),
              "A graph cannot be captured on the default stream, which other ",
              "code uses too; write `with torch.Stream(), graph:`.");
  check(orStreamBeginCapture(nativeStream(stream), modeOf(mode)));
  stream_ = stream;
  capture_ = captureOf(stream);
  try {
    usePool(pool == c10::MempoolId_t{0, 0} ? c10::MempoolId_t{++last_pool, 0}
                                           : pool);
  } catch (...) {
    orStreamEndCapture(nativeStream(stream), &graph_);
    orGraphDestroy(std::exchange(graph_, nullptr));
    stream_.reset();
    capture_ = 0;
    throw;
  }
  setOffsetsOf(capture_, &offsets_);
}

// [graphs.graph.pool] Both allocators call one function for each request: whether its stream belongs to this capture.
void CapturedGraph::usePool(c10::MempoolId_t pool) {
  const auto is_ours = [id = capture_](c10::Stream stream) {
    return captureOf(stream) == id;
  };
  beginPool(stream_->device_index(), pool, is_ours);
  try {
    hostAllocator().begin_allocate_to_pool(pool, is_ours);
  } catch (...) {
    // Another device captures into this pool.
    endPool(stream_->device_index(), pool);
    releasePool(stream_->device_index(), pool, {});
    try {
      hostAllocator().release_pool(pool);
    } catch (const c10::Error&) {
      // It was not taken; the first error says why.
    }
    throw;
  }
  pool_ = pool;
}

c10::MempoolId_t CapturedGraph::pool() const {
  TORCH_CHECK(stream_, "This graph has no pool yet; capture it first.");
  return pool_;
}

// [graphs.graph.end] However the capture has ended, its streams and its memory are free again.
void CapturedGraph::capture_end() {
  TORCH_CHECK(capture_,
              "This graph is not being captured; call capture_begin() first.");
  const orError_t error = orStreamEndCapture(nativeStream(*stream_), &graph_);
  setOffsetsOf(std::exchange(capture_, 0), nullptr);
  endPool(stream_->device_index(), pool_);
  hostAllocator().end_allocate_to_pool(pool_);
  if (error) {
    const std::string sentence = orGetErrorDetail();
    release();
    TORCH_CHECK(false, sentence);
  }
  size_t nodes = 0;
  if (orGraphGetNodeCount(graph_, &nodes) == orSuccess && nodes == 0)
    TORCH_WARN(
        "The graph is empty: nothing was enqueued on its stream while it was "
        "captured. Was the work on another device or another stream?");
  if (!keep_graph_) instantiate();
}

void CapturedGraph::instantiate() {
  TORCH_CHECK(graph_, "There is no graph to instantiate; capture one",
              stream_ ? " with keep_graph=True." : " first.");
  if (executable_) check(orGraphExecDestroy(std::exchange(executable_, {})));
  check(orGraphInstantiate(&executable_, graph_));
  if (keep_graph_ || keep_graph_for_dump_) return;
  check(orGraphDestroy(std::exchange(graph_, nullptr)));
}

// [graphs.graph.replay] A replay waits for the one before, on whatever stream that was, because both use the same memory.
void CapturedGraph::replay() {
  TORCH_CHECK(stream_ && !capture_,
              "There is nothing to replay; capture a graph first.");
  if (!executable_) instantiate();
  const c10::Stream stream = currentStream(stream_->device_index());
  TORCH_CHECK(!isCaptured(stream),
              "A graph cannot be replayed on a stream that is being captured; ",
              "end that capture first.");
  WithoutGil others_run;
  if (replayed_) replayed_->block(stream);
  offsets_.provide(stream);
  check(orGraphLaunch(executable_, nativeStream(stream)));
  if (!replayed_) replayed_.emplace(kDeviceType);
  replayed_->record(stream);
}

// [graphs.graph.reset] The pool's memory is free for all uses once the replays in flight are done with it.
void CapturedGraph::reset() {
  TORCH_CHECK(!capture_,
              "This graph is being captured; call capture_end() first.");
  release();
}

void CapturedGraph::release() noexcept {
  if (!stream_ || orIsForked()) return;
  WithoutGil others_run;
  if (executable_) orGraphExecDestroy(std::exchange(executable_, nullptr));
  if (graph_) orGraphDestroy(std::exchange(graph_, nullptr));
  const c10::DeviceIndex device = stream_->device_index();
  stream_.reset();
  std::vector<c10::Stream> users;
  try {
    if (replayed_)
      replayed_->block(users.emplace_back(uncapturedStream(device)));
  } catch (const std::exception&) {
    // The device has failed, and no replay runs any more.
  }
  replayed_.reset();
  try {
    offsets_.clear(users);
    hostAllocator().release_pool(pool_);
    releasePool(device, pool_, users);
  } catch (const std::exception&) {
    // The device has failed; the memory stays in the pool.
  }
}

// [graphs.graph.destroy] A graph that goes while it is being captured ends its capture first.
CapturedGraph::~CapturedGraph() {
  if (capture_ && !orIsForked()) {
    try {
      capture_end();
    } catch (const std::exception&) {
      // The program has dropped the graph, so no caller is left to tell.
    }
  }
  release();
}

// [graphs.graph.dump] The driver draws the graph, if it was kept.
void CapturedGraph::debug_dump(const std::string& path) {
  TORCH_CHECK(graph_, "There is no graph to dump; call enable_debug_mode() ",
              "before the capture.");
  check(orGraphDebugDotPrint(graph_, path.c_str()));
}

// [-]
}  // namespace openreg

// [graphs.register] PyTorch finds the class by the name of the device in capital letters.
namespace at {
using OpenRegGraph = openreg::CapturedGraph;
REGISTER_GRAPH_IMPL(OPENREG, OpenRegGraph)
}  // namespace at

// [-]
