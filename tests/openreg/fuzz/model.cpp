// SPDX-License-Identifier: BSD-3-Clause
#include "model.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>

namespace {

constexpr size_t kHostBytes = 1 << 17;
constexpr size_t kMost = std::numeric_limits<size_t>::max();

// A call is logged by its text.
#define JUDGE(...) judge(#__VA_ARGS__, __VA_ARGS__)
#define DEMAND(...) demand(#__VA_ARGS__, __VA_ARGS__)

/// What the kernel of the programs does.
void flip(uint8_t* bytes, size_t count, uint8_t value) {
  for (size_t i = 0; i < count; ++i)
    bytes[i] = static_cast<uint8_t>(bytes[i] * 3 + value);
}

}  // namespace

Program::Program(uint64_t seed, bool alone)
    : seed_(seed), alone_(alone), random_(seed), host_(kHostBytes) {
  DEMAND(orGetDeviceCount(&devices_));
  devices_ = std::min(devices_, 2);
  for (int device = 0; device < devices_; ++device) {
    Stream stream{nullptr, device};
    DEMAND(orDeviceGetDefaultStream(&stream.handle, device));
    streams_.push_back(stream);
  }
  for (int device = kHost; device < devices_; ++device)
    allocateOn(device, 5000);
  for (int device = 0; device < devices_; ++device) {
    void* address = nullptr;
    choose(device);
    DEMAND(orMalloc(&address, sizeof(uint32_t)));
    DEMAND(orMemset(address, 0, sizeof(uint32_t)));
    numbers_.push_back({static_cast<uint8_t*>(address), streams_[device], 0});
  }
}

void Program::run() {
  for (int i = 0; i < 200; ++i) step();
  wrong_ = 0;
  expected_ = {};
  while (!graphs_.empty()) dropGraph(0);
  for (size_t block = 0; block < blocks_.size(); ++block) {
    if (blocks_[block].address) compare(block);
  }
  for (size_t block = 0; block < blocks_.size(); ++block) {
    if (blocks_[block].address) releaseBlock(block);
  }
  for (const Number& number : numbers_) DEMAND(orFree(number.address));
  for (const Event& event : events_) DEMAND(orEventDestroy(event.handle));
  for (size_t i = devices_; i < streams_.size(); ++i) {
    DEMAND(orStreamDestroy(streams_[i].handle));
  }
}

// What a call gets.

size_t Program::someSize() {
  const size_t edges[] = {1,   2,    3,    4,    511,   512,
                          513, 4095, 4096, 4097, 65536, 65537};
  return chance(70) ? edges[below(std::size(edges))] : 1 + below(100000);
}

size_t Program::someBlock(int device, size_t bytes) {
  std::vector<size_t> found;
  for (size_t block = 0; block < blocks_.size(); ++block) {
    const Block& each = blocks_[block];
    if (each.address && each.device == device && each.bytes.size() >= bytes)
      found.push_back(block);
  }
  return found[below(found.size())];
}

Program::Stream Program::someStream(int device) {
  std::vector<Stream> found;
  for (const Stream& stream : streams_) {
    if (stream.device == device) found.push_back(stream);
  }
  return found[below(found.size())];
}

bool Program::isWrong(std::initializer_list<orError_t> codes) {
  if (++arguments_ != wrong_) return false;
  expected_ = codes;
  return true;
}

/// A handle that names nothing: of something destroyed, or invented.
template <class Handle>
Handle Program::forge(const std::vector<Handle>& gone) {
  if (!gone.empty() && chance(60)) return gone[below(gone.size())];
  const uint64_t invented = random_() | 1ull << 63;
  return reinterpret_cast<Handle>(
      chance(50) ? reinterpret_cast<uint64_t>(host_.data()) : invented);
}

orStream_t Program::pass(Stream stream) {
  return isWrong({orErrorInvalidResourceHandle}) ? forge(gone_streams_)
                                                 : stream.handle;
}

orEvent_t Program::pass(const Event& event) {
  return isWrong({orErrorInvalidResourceHandle}) ? forge(gone_events_)
                                                 : event.handle;
}

uint8_t* Program::passBegin(size_t block) {
  uint8_t* address = blocks_[block].address;
  if (!isWrong({orErrorInvalidValue})) return address;
  if (alone_ && !freed_.empty() && chance(50))
    return freed_[below(freed_.size())];
  const size_t bytes = blocks_[block].bytes.size();
  return bytes > 1 && chance(60) ? address + 1 + below(bytes - 1) : &host_[1];
}

uint8_t* Program::passRange(size_t block, size_t offset, size_t bytes) {
  uint8_t* address = blocks_[block].address;
  if (bytes == 0 ||
      !isWrong({orErrorInvalidValue, orErrorInvalidMemcpyDirection}))
    return address + offset;
  const size_t size = blocks_[block].bytes.size();
  if (alone_ && !freed_.empty() && chance(40))
    return freed_[below(freed_.size())];
  // Past the end, but not from behind it, where the next block may begin.
  return bytes > 1 && chance(60) ? address + size - bytes + 1 + below(bytes - 1)
                                 : nullptr;
}

size_t Program::passCount(size_t bytes) {
  if (!isWrong({orErrorInvalidValue})) return bytes;
  return chance(50) ? kMost - below(1 << 20) : kMost / 2 + below(1 << 20);
}

int Program::passDevice(int device) {
  if (!isWrong({orErrorInvalidDevice})) return device;
  const int wrong[] = {-1, 1000, std::numeric_limits<int>::max(),
                       std::numeric_limits<int>::min()};
  return wrong[below(std::size(wrong))];
}

unsigned Program::passFlags(unsigned flags) {
  return isWrong({orErrorInvalidValue})
             ? 2u + static_cast<unsigned>(below(1000))
             : flags;
}

// What a call returns.

bool Program::judge(const char* name, orError_t code, bool may_be_unready) {
  std::string text = std::string(name) + " -> " + orGetErrorName(code);
  if (!expected_.empty())
    text += ", argument " + std::to_string(wrong_) + " is wrong";
  log_.push_back(text);
  if (expected_.empty()) {
    if (code == orErrorNotReady && may_be_unready) return true;
    if (code != orSuccess)
      fail(std::string("is refused: ") + orGetErrorDetail());
    return true;
  }
  if (std::find(expected_.begin(), expected_.end(), code) == expected_.end()) {
    fail(std::string("should return ") + orGetErrorName(expected_.front()));
  }
  const std::string sentence = orGetErrorDetail();
  if (sentence.empty() || sentence.back() != '.')
    fail("has no sentence: " + sentence);
  if (orPeekAtLastError() != code) fail("left another last error");
  return false;
}

/// For the calls that join others; all of their arguments are right.
void Program::demand(const char* name, orError_t code) {
  log_.push_back(std::string(name) + " -> " + orGetErrorName(code));
  if (code != orSuccess) fail(std::string("is refused: ") + orGetErrorDetail());
}

void Program::fail(const std::string& why) {
  for (size_t i = log_.size() - std::min<size_t>(log_.size(), 30);
       i < log_.size(); ++i) {
    std::fprintf(stderr, "%5zu %s\n", i, log_[i].c_str());
  }
  std::fprintf(stderr, "seed %llu: the last call %s\n",
               static_cast<unsigned long long>(seed_), why.c_str());
  std::fflush(stderr);
  std::_Exit(1);
}

/// What is enqueued on `second` from now on comes after what is enqueued on
/// `first`.
void Program::order(Stream first, Stream second) {
  orEvent_t event;
  choose(first.device);
  DEMAND(orEventCreateWithFlags(&event, orEventDisableTiming));
  DEMAND(orEventRecord(event, first.handle));
  DEMAND(orStreamWaitEvent(second.handle, event, 0));
  DEMAND(orEventDestroy(event));
}

void Program::useOn(size_t block, Stream stream) {
  if (blocks_[block].stream.handle != stream.handle)
    order(blocks_[block].stream, stream);
  blocks_[block].stream = stream;
}

void Program::compare(size_t block) {
  const Block& each = blocks_[block];
  std::vector<uint8_t> found(each.bytes.size());
  DEMAND(orStreamSynchronize(each.stream.handle));
  if (each.device == kHost) {
    std::memcpy(found.data(), each.address, found.size());
  } else {
    choose(each.device);
    DEMAND(orMemcpy(found.data(), each.address, found.size(),
                    orMemcpyDeviceToHost));
  }
  const auto [have, want] =
      std::mismatch(found.begin(), found.end(), each.bytes.begin());
  if (have == found.end()) return;
  fail("finds " + std::to_string(*have) + " where " + std::to_string(*want) +
       " should be, at byte " + std::to_string(have - found.begin()) +
       " of block " + std::to_string(block));
}

// Memory.

void Program::allocateOn(int device, size_t bytes) {
  void* address = nullptr;
  if (device != kHost) choose(device);
  const size_t refused[] = {kMost, kMost - 511, kMost - 4095, size_t{1} << 60};
  const size_t asked = isWrong({orErrorMemoryAllocation})
                           ? refused[below(std::size(refused))]
                           : bytes;
  void** out = passOut(address);
  const orError_t code =
      device == kHost ? orMallocHost(out, asked) : orMalloc(out, asked);
  if (!judge(device == kHost ? "orMallocHost" : "orMalloc", code)) return;
  auto* begin = static_cast<uint8_t*>(address);
  if (!begin) fail("gave null");
  freed_.erase(std::remove_if(freed_.begin(), freed_.end(),
                              [&](uint8_t* each) {
                                return each >= begin && each < begin + bytes;
                              }),
               freed_.end());
  const Stream first = streams_[std::max(device, 0)];
  blocks_.push_back({begin, device, first, std::vector<uint8_t>(bytes)});
  if (device == kHost) {
    std::memset(begin, 0, bytes);
  } else {
    DEMAND(orMemsetAsync(begin, 0, bytes, first.handle));
  }
}

void Program::allocate() {
  allocateOn(static_cast<int>(below(devices_ + 1)) - 1, someSize());
}

/// Not of the first blocks, so that there is always one.
void Program::release() {
  const size_t block = below(blocks_.size());
  if (block > static_cast<size_t>(devices_) && blocks_[block].address)
    releaseBlock(block);
}

void Program::releaseBlock(size_t block) {
  const Block each = blocks_[block];
  uint8_t* address = passBegin(block);
  const bool on_host = each.device == kHost;
  if (expected_.empty()) {
    for (size_t i = graphs_.size(); i-- > 0;) {
      const std::vector<size_t>& used = graphs_[i].blocks;
      if (std::find(used.begin(), used.end(), block) != used.end())
        dropGraph(i);
    }
  }
  const orError_t code = on_host ? orFreeHost(address) : orFree(address);
  if (!judge(on_host ? "orFreeHost" : "orFree", code)) return;
  blocks_[block].address = nullptr;
  blocks_[block].bytes = {};
  freed_.push_back(each.address);
}

void Program::set() {
  const int device = static_cast<int>(below(devices_));
  const size_t block = someBlock(device);
  const size_t offset = below(blocks_[block].bytes.size());
  const size_t bytes = 1 + below(blocks_[block].bytes.size() - offset);
  const int value = static_cast<int>(below(100000));
  const bool waits = chance(20);
  const Stream stream = waits ? streams_[device] : someStream(device);
  useOn(block, stream);
  choose(device);
  uint8_t* address = passRange(block, offset, bytes);
  const size_t count = passCount(bytes);
  const orError_t code =
      waits ? orMemset(address, value, count)
            : orMemsetAsync(address, value, count, pass(stream));
  if (judge("orMemset", code)) {
    std::fill_n(blocks_[block].bytes.begin() + offset, bytes,
                static_cast<uint8_t>(value));
  }
}

void Program::copy() {
  // Of the kinds that exist; the host's side is pinned, or pageable memory of
  // this program.
  const int device = static_cast<int>(below(devices_));
  const auto kind = static_cast<orMemcpyKind>(1 + below(3));
  const bool from_device = kind != orMemcpyHostToDevice,
             to_device = kind != orMemcpyDeviceToHost;
  const bool pageable = kind != orMemcpyDeviceToDevice && chance(40);
  const size_t source = someBlock(from_device ? device : kHost);
  const size_t bytes = 1 + below(blocks_[source].bytes.size());
  const size_t target = someBlock(to_device ? device : kHost);
  const size_t count = std::min(bytes, blocks_[target].bytes.size());
  if (source == target) return;
  const size_t from = below(blocks_[source].bytes.size() - count + 1);
  const size_t to = below(blocks_[target].bytes.size() - count + 1);
  const bool waits = chance(20);
  const Stream stream = waits ? streams_[device] : someStream(device);
  useOn(source, stream);
  useOn(target, stream);
  choose(device);
  for (size_t i = 0; pageable && !from_device && i < count; ++i) {
    host_[i] = static_cast<uint8_t>(i + seed_);
  }
  void* src =
      pageable && !from_device ? host_.data() : passRange(source, from, count);
  void* dst =
      pageable && !to_device ? host_.data() : passRange(target, to, count);
  const size_t size = passCount(count);
  auto how = kind;
  if (isWrong({orErrorInvalidMemcpyDirection}))
    how = static_cast<orMemcpyKind>(4 + below(100));
  const orError_t code = waits
                             ? orMemcpy(dst, src, size, how)
                             : orMemcpyAsync(dst, src, size, how, pass(stream));
  if (!judge("orMemcpy", code)) return;
  const uint8_t* bytes_from = pageable && !from_device
                                  ? host_.data()
                                  : blocks_[source].bytes.data() + from;
  if (pageable && !to_device) {
    if (std::memcmp(host_.data(), bytes_from, count) != 0)
      fail("gave the host other bytes");
  } else {
    std::memcpy(blocks_[target].bytes.data() + to, bytes_from, count);
  }
}

void Program::copyToPeer() {
  if (devices_ < 2) return;
  const int from = static_cast<int>(below(2)), to = 1 - from;
  const size_t source = someBlock(from), target = someBlock(to);
  if (source == target) return;
  const size_t most =
      std::min(blocks_[source].bytes.size(), blocks_[target].bytes.size());
  const size_t bytes = 1 + below(most);
  const Stream stream = someStream(chance(50) ? from : to);
  useOn(source, stream);
  useOn(target, stream);
  uint8_t* dst = passRange(target, 0, bytes);
  const int dst_device = passDevice(to);
  uint8_t* src = passRange(source, 0, bytes);
  const int src_device = passDevice(from);
  const size_t count = passCount(bytes);
  const orError_t code =
      orMemcpyPeerAsync(dst, dst_device, src, src_device, count, pass(stream));
  if (judge("orMemcpyPeerAsync", code)) {
    std::copy_n(blocks_[source].bytes.begin(), bytes,
                blocks_[target].bytes.begin());
  }
}

void Program::launch() {
  const int device = static_cast<int>(below(devices_));
  const size_t block = someBlock(device);
  const Stream stream = someStream(device);
  useOn(block, stream);
  uint8_t* address = blocks_[block].address;
  const size_t bytes = blocks_[block].bytes.size();
  const auto value = static_cast<uint8_t>(below(256));
  const orError_t code =
      openreg::launch(pass(stream), "flip", [address, bytes, value] {
        flip(openreg::onDevice(address), bytes, value);
      });
  if (judge("orLaunchCommand", code))
    flip(blocks_[block].bytes.data(), bytes, value);
}

/// One stream writes a number, and another one waits for it before it uses the
/// block.
void Program::signal() {
  const int device = static_cast<int>(below(devices_));
  Number& number = numbers_[device];
  const size_t block = someBlock(device);
  const Stream writer = someStream(device), waiter = someStream(device);
  useOn(block, writer);
  order(number.stream, writer);
  uint8_t* wrong = chance(50) ? number.address + 1 : nullptr;
  uint8_t* to = isWrong({orErrorInvalidValue}) ? wrong : number.address;
  const uint32_t next = number.value + 1;
  if (!JUDGE(orStreamWriteValue32(pass(writer), to, next))) return;
  number.value = next;
  number.stream = writer;
  uint8_t* from = isWrong({orErrorInvalidValue}) ? wrong : number.address;
  if (JUDGE(orStreamWaitValue32(pass(waiter), from, next))) {
    blocks_[block].stream = number.stream = waiter;
  }
}

// Streams, events and graphs.

void Program::createStream() {
  if (streams_.size() > 8) return;
  Stream stream{nullptr, static_cast<int>(below(devices_))};
  choose(stream.device);
  orStream_t* out = passOut(stream.handle);
  const unsigned flags = passFlags(0);
  const int priority = static_cast<int>(below(200)) - 100;
  if (JUDGE(orStreamCreateWithPriority(out, flags, priority))) {
    streams_.push_back(stream);
  }
}

void Program::destroyStream() {
  const size_t number = below(streams_.size());
  const Stream stream = streams_[number];
  if (number < static_cast<size_t>(devices_)) {  // The default streams stay.
    expected_ = {orErrorInvalidValue, orErrorInvalidResourceHandle};
    JUDGE(orStreamDestroy(stream.handle));
    return;
  }
  const orStream_t handle = pass(stream);
  if (expected_
          .empty()) {  // What it was used for goes on in the default stream.
    const Stream next = streams_[stream.device];
    for (size_t block = 0; block < blocks_.size(); ++block) {
      if (blocks_[block].stream.handle == stream.handle) useOn(block, next);
    }
    Number& number = numbers_[stream.device];
    order(number.stream, next);
    number.stream = next;
  }
  if (JUDGE(orStreamDestroy(handle))) {
    streams_.erase(streams_.begin() + number);
    gone_streams_.push_back(handle);
  }
}

void Program::createEvent() {
  if (events_.size() > 8) return;
  Event event{nullptr, kHost, false};
  const unsigned timing =
      chance(50) ? orEventEnableTiming : orEventDisableTiming;
  orEvent_t* out = passOut(event.handle);
  const unsigned flags = passFlags(timing);
  if (JUDGE(orEventCreateWithFlags(out, flags))) events_.push_back(event);
}

void Program::destroyEvent() {
  if (events_.empty()) return;
  const size_t number = below(events_.size());
  const orEvent_t handle = pass(events_[number]);
  if (JUDGE(orEventDestroy(handle))) {
    events_.erase(events_.begin() + number);
    gone_events_.push_back(handle);
  }
}

void Program::recordAndWait() {
  if (events_.empty()) return;
  Event& event = events_[below(events_.size())];
  if (event.is_recorded && devices_ > 1 && chance(15)) {
    expected_ = {orErrorInvalidValue};
    JUDGE(orEventRecord(event.handle, someStream(1 - event.device).handle));
    return;
  }
  // The first recording decides on the device.
  const int device =
      event.is_recorded ? event.device : static_cast<int>(below(devices_));
  const orEvent_t recorded = pass(event);
  if (!JUDGE(orEventRecord(recorded, pass(someStream(device))))) return;
  event.is_recorded = true;
  event.device = device;
  const orStream_t waits = pass(someStream(static_cast<int>(below(devices_))));
  const orEvent_t awaited = pass(event);
  JUDGE(orStreamWaitEvent(waits, awaited, passFlags(0)));
}

void Program::capture() {
  if (graphs_.size() > 4) return;
  const size_t number = below(streams_.size());
  const Stream stream = streams_[number];
  if (number < static_cast<size_t>(devices_)) {
    expected_ = {orErrorInvalidValue};
    JUDGE(orStreamBeginCapture(stream.handle, orStreamCaptureModeThreadLocal));
    return;
  }
  const size_t first = someBlock(stream.device),
               second = someBlock(stream.device);
  useOn(first, stream);
  useOn(second, stream);
  choose(stream.device);
  Graph graph{nullptr, stream.device, {first, second}, {}};
  const orStream_t begun = pass(stream);
  if (!JUDGE(orStreamBeginCapture(begun, orStreamCaptureModeThreadLocal))) {
    return;
  }
  const size_t count =
      std::min(blocks_[first].bytes.size(), blocks_[second].bytes.size());
  for (size_t i = 0, nodes = 1 + below(4); i < nodes; ++i) {
    const auto value = static_cast<uint8_t>(below(256));
    if (chance(30)) {
      demand(
          "orMemsetAsync (captured)",
          orMemsetAsync(blocks_[first].address, value, count, stream.handle));
      graph.changes.push_back([=, this] {
        std::fill_n(blocks_[first].bytes.begin(), count, value);
      });
    } else if (chance(40) && first != second) {
      demand("orMemcpyAsync (captured)",
             orMemcpyAsync(blocks_[second].address, blocks_[first].address,
                           count, orMemcpyDeviceToDevice, stream.handle));
      graph.changes.push_back([=, this] {
        std::copy_n(blocks_[first].bytes.begin(), count,
                    blocks_[second].bytes.begin());
      });
    } else {
      uint8_t* address = blocks_[second].address;
      demand("orLaunchCommand (captured)",
             openreg::launch(stream.handle, "flip", [address, count, value] {
               flip(openreg::onDevice(address), count, value);
             }));
      graph.changes.push_back(
          [=, this] { flip(blocks_[second].bytes.data(), count, value); });
    }
  }
  const bool spoiled = isWrong({orErrorStreamCaptureUnsupported});
  if (spoiled) {
    judge("orStreamSynchronize (captured)", orStreamSynchronize(stream.handle));
    expected_ = {orErrorStreamCaptureInvalidated};
  }
  orGraph_t recorded = nullptr;
  if (!JUDGE(orStreamEndCapture(stream.handle, &recorded))) {
    if (recorded) fail("left a graph");
    return;
  }
  orGraphExec_t* out = passOut(graph.handle);
  const bool there = JUDGE(orGraphInstantiate(out, recorded));
  expected_ = {};
  DEMAND(orGraphDestroy(recorded));
  if (there) graphs_.push_back(graph);
}

void Program::replay() {
  if (graphs_.empty()) return;
  const Graph& graph = graphs_[below(graphs_.size())];
  const Stream stream = someStream(graph.device);
  for (size_t block : graph.blocks) useOn(block, stream);
  const bool is_wrong = isWrong({orErrorInvalidResourceHandle});
  const orGraphExec_t handle = is_wrong ? forge(gone_graphs_) : graph.handle;
  if (JUDGE(orGraphLaunch(handle, pass(stream)))) {
    for (const auto& change : graph.changes) change();
  }
}

void Program::dropGraph(size_t graph) {
  DEMAND(orGraphExecDestroy(graphs_[graph].handle));
  gone_graphs_.push_back(graphs_[graph].handle);
  graphs_.erase(graphs_.begin() + graph);
}

// Questions, and the optional parts.

void Program::ask() {
  const int device = static_cast<int>(below(devices_));
  const Stream stream = someStream(device);
  switch (below(9)) {
    case 0:
      JUDGE(orStreamQuery(pass(stream)), true);
      break;
    case 1:
      JUDGE(orStreamSynchronize(pass(stream)));
      break;
    case 2: {
      int found = -7;
      const orStream_t asked = pass(stream);
      if (JUDGE(orStreamGetDevice(asked, passOut(found))) && found != device) {
        fail("named another device");
      }
      break;
    }
    case 3: {
      orPointerAttributes found;
      const int where = static_cast<int>(below(devices_ + 1)) - 1;
      const Block& block = blocks_[someBlock(where)];
      const uint8_t* inside = block.address + below(block.bytes.size());
      if (JUDGE(orPointerGetAttributes(passOut(found), inside)) &&
          (found.pointer != block.address || found.size != block.bytes.size() ||
           found.device != where ||
           found.type !=
               (where == kHost ? orMemoryTypeHost : orMemoryTypeDevice))) {
        fail("knows another block");
      }
      break;
    }
    case 4: {
      size_t free = 0, total = 0;
      size_t* out = passOut(free);
      if (JUDGE(orMemGetInfo(out, passOut(total))) && free > total) {
        fail("has more free than there is");
      }
      break;
    }
    case 5: {
      if (!events_.empty()) {
        const Event& event = events_[below(events_.size())];
        if (JUDGE(orEventQuery(pass(event)), true)) {
          JUDGE(orEventSynchronize(pass(event)));
        }
      }
      break;
    }
    case 6:
      JUDGE(orSetDevice(passDevice(device)));
      break;
    case 7: {
      orDeviceProp properties;
      orDeviceProp* out = passOut(properties);
      JUDGE(orGetDeviceProperties(out, passDevice(device)));
      break;
    }
    case 8:
      // Not while another thread may capture.
      if (alone_) JUDGE(orDeviceSynchronize());
      break;
  }
}

void Program::useTools() {
  switch (below(4)) {
    case 0: {
      orObserver_t observer = nullptr;
      const auto observe = [](const orRecord*, void*) {};
      if (!JUDGE(orAddObserver(passOut(observer), observe, nullptr))) break;
      const bool forged = isWrong({orErrorInvalidResourceHandle});
      JUDGE(orRemoveObserver(forged ? forge<orObserver_t>({}) : observer));
      expected_ = {};
      if (forged) DEMAND(orRemoveObserver(observer));
      break;
    }
    case 1:
      DEMAND(orRangePush(chance(50) ? "a range" : nullptr));
      DEMAND(orRangePop());
      expected_ = {orErrorInvalidValue};
      JUDGE(orRangePop());
      break;
    case 2: {
      orIpcMemHandle_t handle;
      const size_t block = someBlock(static_cast<int>(below(devices_)));
      uint8_t* address = passBegin(block);
      JUDGE(orIpcGetMemHandle(passOut(handle), address));
      break;
    }
    case 3: {
      orIpcMemHandle_t handle;
      for (char& each : handle.reserved) each = static_cast<char>(below(256));
      void* opened = nullptr;
      expected_ = {orErrorInvalidResourceHandle};
      JUDGE(orIpcOpenMemHandle(&opened, handle));
      break;
    }
  }
}

void Program::step() {
  arguments_ = 0;
  wrong_ = chance(40) ? 1 + below(5) : 0;
  expected_ = {};
  using Call = void (Program::*)();
  static constexpr Call calls[] = {
      &Program::allocate,      &Program::release,       &Program::set,
      &Program::set,           &Program::copy,          &Program::copy,
      &Program::copy,          &Program::copyToPeer,    &Program::launch,
      &Program::launch,        &Program::signal,        &Program::createStream,
      &Program::createEvent,   &Program::destroyStream, &Program::destroyEvent,
      &Program::recordAndWait, &Program::capture,       &Program::replay,
      &Program::ask,           &Program::ask,           &Program::useTools,
  };
  (this->*calls[below(std::size(calls))])();
}
