// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/examples/plain/machine.h"

#include <pthread.h>
#include <sys/mman.h>

#include <atomic>
#include <new>
#include <thread>

namespace openreg::hardware {
namespace {

// [plain.memory.range] The system gives pages to a range when they are first written, and gets them back when no block uses them.
uintptr_t range() {
  void* begin = mmap(nullptr, Machine::kMemory, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (begin == MAP_FAILED) throw std::bad_alloc();
  return reinterpret_cast<uintptr_t>(begin);
}

void giveBack(uintptr_t begin, size_t size) {
  madvise(reinterpret_cast<void*>(begin), size, MADV_DONTNEED);
}

thread_local bool is_device_thread = false;
std::atomic<bool> is_started{false}, is_forked{false};

// [-]
}  // namespace

// [plain.start] The thread is never joined: at exit, pending work is dropped.
Machine::Machine()
    : memory{Region(range(), kMemory, giveBack),
             Region(range(), kMemory, giveBack)},
      pinned(range(), kMemory, giveBack) {
  for (int device = 0; device < kDevices; ++device)
    streams_[defaultStream(device)] = {device, 0};
  pthread_atfork(nullptr, nullptr, [] { is_forked = true; });
  std::thread([this] { run(); }).detach();
  is_started = true;
}

Machine& machine() {
  static Machine* const machine = new Machine;
  return *machine;
}

bool isStarted() { return is_started; }

int& current() {
  thread_local int device = 0;
  return device;
}

// [plain.start.forked] A forked child has the memory of its parent, but not the thread that runs its commands.
orError_t enter() {
  if (!is_forked) return orSuccess;
  return fail(orErrorForked,
              "This process was forked from one that had started the device; "
              "use the start method \"spawn\".");
}

orError_t checkMayWait() {
  if (!is_device_thread) return orSuccess;
  return fail(orErrorNotPermitted,
              "This function runs on the device's thread, which cannot wait "
              "for itself.");
}

orError_t checkDevice(int index) {
  if (index >= 0 && index < Machine::kDevices) return orSuccess;
  return fail(orErrorInvalidDevice, "openreg:", index,
              " does not exist; this machine has ", Machine::kDevices,
              " openreg devices, numbered from 0.");
}

// [plain.commands.run] The device takes one command after the other, and runs it without the lock.
void Machine::run() {
  is_device_thread = true;
  std::unique_lock lock(mutex_);
  while (true) {
    work_.wait(lock, [this] { return !commands_.empty(); });
    std::function<void()> command = std::move(commands_.front());
    commands_.pop_front();
    lock.unlock();
    command();
    command = nullptr;
    lock.lock();
    ++completed_;
    done_.notify_all();
  }
}

// [plain.commands.enqueue] A null handle is the default stream of the current device.
orError_t Machine::with(orStream_t handle,
                        const std::function<orError_t(Stream&)>& use) {
  std::lock_guard lock(mutex_);
  const auto found = streams_.find(handle ? handle : defaultStream(current()));
  return found == streams_.end() ? refuseStream(handle) : use(found->second);
}

orError_t Machine::enqueue(orStream_t stream, std::function<void()> command,
                           uint64_t* number) {
  return with(stream, [&](Stream& found) {
    commands_.push_back(std::move(command));
    found.last = ++submitted_;
    if (number) *number = submitted_;
    work_.notify_one();
    return orSuccess;
  });
}

// [plain.commands.wait] Waiting for a command means waiting for all that were enqueued before it.
orError_t Machine::wait(uint64_t number) {
  if (const orError_t error = checkMayWait()) return error;
  std::unique_lock lock(mutex_);
  done_.wait(lock, [&] { return hasRun(number); });
  return orSuccess;
}

uint64_t Machine::submitted() {
  std::lock_guard lock(mutex_);
  return submitted_;
}

// [plain.handles.streams] A stream can be destroyed while its commands wait, because they do not refer to it.
orStream_t Machine::createStream() {
  std::lock_guard lock(mutex_);
  const auto handle = reinterpret_cast<orStream_t>(++last_handle_);
  streams_[handle] = {current(), 0};
  return handle;
}

orError_t Machine::destroy(orStream_t handle) {
  std::lock_guard lock(mutex_);
  const bool is_default =
      reinterpret_cast<uintptr_t>(handle) <= uintptr_t{kDevices};
  const bool mine = !is_default && streams_.erase(handle);
  return mine ? orSuccess : refuseStream(handle);
}

// [plain.handles.events] The same for events.
orError_t Machine::with(orEvent_t handle,
                        const std::function<orError_t(Event&)>& use) {
  std::lock_guard lock(mutex_);
  const auto found = events_.find(handle);
  return found == events_.end() ? refuseEvent(handle) : use(found->second);
}

orEvent_t Machine::createEvent(bool is_timed) {
  std::lock_guard lock(mutex_);
  const auto handle = reinterpret_cast<orEvent_t>(++last_handle_);
  events_[handle] = {-1, is_timed, 0, nullptr};
  return handle;
}

orError_t Machine::destroy(orEvent_t handle) {
  std::lock_guard lock(mutex_);
  return events_.erase(handle) ? orSuccess : refuseEvent(handle);
}

// [-]
}  // namespace openreg::hardware

// [plain.start.is-forked] This function must work in the child too, so it starts nothing.
int orIsForked() noexcept { return openreg::hardware::is_forked; }

// [-]
