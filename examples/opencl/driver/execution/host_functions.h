// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/examples/opencl/driver/core/owned.h"

#include <condition_variable>
#include <deque>
#include <mutex>

namespace openreg::hardware {

// [opencl.host-functions] Host functions run on a thread of ours, because a callback of the runtime must not block.
class HostFunctions {
 public:
  using Function = void (*)(void*);

  /// Enqueues a marker, and a barrier that the function opens when it is done.
  /// `last` becomes the barrier's event.
  cl_int enqueue(cl_context context, cl_command_queue queue, Function function,
                 void* data, cl_event* last);

 private:
  struct Call {
    HostFunctions* owner;
    Function function;
    void* data;
    EventRef done;
  };

  static void CL_CALLBACK becomeReady(cl_event, cl_int status, void* call);
  void run();

  std::mutex mutex_;
  std::condition_variable woken_;
  std::deque<Call> ready_;
  bool started_ = false;
};

/// Whether the calling thread runs host functions.
bool onHostFunctionThread();

// [-]
}  // namespace openreg::hardware
