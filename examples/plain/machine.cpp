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
void enter() {
  if (!is_forked) return;
  throw fail(orErrorForked,
             "This process was forked from one that had started the device; "
             "use the start method \"spawn\".");
}

// [plain.start.checks] Three checks that many functions share.
void checkMayWait() {
  if (!is_device_thread) return;
  throw fail(orErrorNotPermitted,
             "This function runs on the device's thread, which cannot wait "
             "for itself.");
}

void checkDevice(int index) {
  if (index >= 0 && index < Machine::kDevices) return;
  throw refuseDevice(index, Machine::kDevices);
}

void checkFlags(unsigned int flags, unsigned int most) {
  if (flags <= most) return;
  throw fail(orErrorInvalidValue, "The flags are ", flags,
             "; they must be at most ", most, ".");
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

// [plain.commands.enqueue] The stream is looked up under the lock that orders the commands, so no other thread destroys it in between.
uint64_t Machine::enqueue(orStream_t stream, std::function<void()> command) {
  std::lock_guard lock(mutex_);
  Stream& found = find(stream);
  commands_.push_back(std::move(command));
  work_.notify_one();
  return found.last = ++submitted_;
}

// [plain.commands.wait] The thread counts the commands that have run, and a call that waits looks at the count.
void Machine::wait(uint64_t number) {
  checkMayWait();
  std::unique_lock lock(mutex_);
  done_.wait(lock, [&] { return number <= completed_; });
}

void Machine::waitForAll() {
  std::unique_lock lock(mutex_);
  const uint64_t last = submitted_;
  lock.unlock();
  wait(last);
}

bool Machine::hasRun(uint64_t number) {
  std::lock_guard lock(mutex_);
  return number <= completed_;
}

// [plain.handles.streams] A stream can be destroyed while its commands wait, because they do not refer to it.
Stream& Machine::find(orStream_t handle) {
  const auto found = streams_.find(handle ? handle : defaultStream(current()));
  if (found == streams_.end()) throw refuseStream(handle);
  return found->second;
}

Stream Machine::get(orStream_t handle) {
  std::lock_guard lock(mutex_);
  return find(handle);
}

orStream_t Machine::add(Stream stream) {
  std::lock_guard lock(mutex_);
  const auto handle = reinterpret_cast<orStream_t>(++last_handle_);
  streams_[handle] = stream;
  return handle;
}

void Machine::destroy(orStream_t handle) {
  std::lock_guard lock(mutex_);
  const bool is_default = handle <= defaultStream(kDevices - 1);
  if (is_default || !streams_.erase(handle)) throw refuseStream(handle);
}

// [plain.handles.events] The same for events.
Event& Machine::find(orEvent_t handle) {
  const auto found = events_.find(handle);
  if (found == events_.end()) throw refuseEvent(handle);
  return found->second;
}

Event Machine::get(orEvent_t handle) {
  std::lock_guard lock(mutex_);
  return find(handle);
}

void Machine::set(orEvent_t handle, Event event) {
  std::lock_guard lock(mutex_);
  find(handle) = std::move(event);
}

orEvent_t Machine::add(Event event) {
  std::lock_guard lock(mutex_);
  const auto handle = reinterpret_cast<orEvent_t>(++last_handle_);
  events_[handle] = std::move(event);
  return handle;
}

void Machine::destroy(orEvent_t handle) {
  std::lock_guard lock(mutex_);
  if (!events_.erase(handle)) throw refuseEvent(handle);
}

// [-]
}  // namespace openreg::hardware

// [plain.start.is-forked] This function must work in the child too, so it starts nothing.
int orIsForked() noexcept { return openreg::hardware::is_forked; }

// [-]
