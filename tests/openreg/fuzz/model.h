// SPDX-License-Identifier: BSD-3-Clause
// A random program, and what its calls must do.
#pragma once

#include "torch_openreg/common/openreg/interface/openreg.h"
#include "torch_openreg/common/openreg/interface/openreg_graphs.h"
#include "torch_openreg/common/openreg/interface/openreg_kernels.h"
#include "torch_openreg/common/openreg/interface/openreg_signals.h"
#include "torch_openreg/common/openreg/interface/openreg_tools.h"

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <random>
#include <string>
#include <vector>

/// One program of about two hundred calls, decided by its seed. A mistake of
/// the driver prints the seed and the calls, and ends the process.
class Program {
 public:
  /// `alone`: no other thread allocates, so that memory which was freed stays
  /// free.
  Program(uint64_t seed, bool alone);
  void run();
  size_t calls() const { return log_.size(); }

 private:
  struct Stream {
    orStream_t handle;
    int device;
  };
  struct Block {
    uint8_t* address;            // null when it was freed
    int device;                  // kHost: pinned memory
    Stream stream;               // where it was used last
    std::vector<uint8_t> bytes;  // after all work that is enqueued
  };
  struct Number {  // It only grows, so that a stream can wait for it.
    uint8_t* address;
    Stream stream;
    uint32_t value;
  };
  struct Event {
    orEvent_t handle;
    int device;
    bool is_recorded;
  };
  struct Graph {
    orGraphExec_t handle;
    int device;
    std::vector<size_t> blocks;
    // What a launch does to their bytes.
    std::vector<std::function<void()>> changes;
  };
  static constexpr int kHost = -1;

  // Choices.
  size_t below(size_t limit) {
    return std::uniform_int_distribution<size_t>(0, limit - 1)(random_);
  }
  bool chance(int percent) { return static_cast<int>(below(100)) < percent; }
  size_t someSize();
  /// A block of a device or of the host that has some bytes. There is one of
  /// each from the start.
  size_t someBlock(int device, size_t bytes = 1);
  Stream someStream(int device);

  // Arguments: each is right, or it is the wrong one of this call.
  bool isWrong(std::initializer_list<orError_t> codes);
  orStream_t pass(Stream stream);
  orEvent_t pass(const Event& event);
  uint8_t* passBegin(size_t block);
  uint8_t* passRange(size_t block, size_t offset, size_t bytes);
  size_t passCount(size_t bytes);
  int passDevice(int device);
  unsigned passFlags(unsigned flags);
  template <class Out>
  Out* passOut(Out& out) {
    return isWrong({orErrorInvalidValue}) ? nullptr : &out;
  }
  template <class Handle>
  Handle forge(const std::vector<Handle>& gone);

  // Calls.
  void step();
  /// Whether the call was right, and so has changed something.
  bool judge(const char* name, orError_t code, bool may_be_unready = false);
  void demand(const char* name, orError_t code);
  [[noreturn]] void fail(const std::string& why);
  void choose(int device) { demand("orSetDevice", orSetDevice(device)); }
  void order(Stream first, Stream second);
  void useOn(size_t block, Stream stream);
  void compare(size_t block);
  void allocate();
  void allocateOn(int device, size_t bytes);
  void release();
  void releaseBlock(size_t block);
  void set();
  void copy();
  void copyToPeer();
  void launch();
  void signal();
  void createStream();
  void destroyStream();
  void createEvent();
  void destroyEvent();
  void recordAndWait();
  void ask();
  void useTools();
  void capture();
  void replay();
  void dropGraph(size_t graph);

  const uint64_t seed_;
  const bool alone_;
  std::mt19937_64 random_;
  int devices_ = 0;
  std::vector<std::string> log_;
  std::vector<Block> blocks_;
  std::vector<uint8_t*> freed_;
  std::vector<Stream> streams_;  // the default streams first
  std::vector<Number> numbers_;  // one of each device
  std::vector<Event> events_;
  std::vector<Graph> graphs_;
  std::vector<orStream_t> gone_streams_;  // handles of what was destroyed
  std::vector<orEvent_t> gone_events_;
  std::vector<orGraphExec_t> gone_graphs_;
  std::vector<uint8_t> host_;

  // The call that is being made.
  size_t arguments_ = 0;
  // The number of its wrong argument, from 1; 0 if all are right.
  size_t wrong_ = 0;
  std::vector<orError_t> expected_;
};
