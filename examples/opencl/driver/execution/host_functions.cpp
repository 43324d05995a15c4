// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/examples/opencl/driver/execution/host_functions.h"

#include <memory>
#include <thread>

namespace openreg::hardware {
namespace {

// [opencl.host-functions.thread] A thread knows whether it runs host functions, which must not wait for the device.
thread_local bool is_host_function_thread = false;
}  // namespace

bool onHostFunctionThread() { return is_host_function_thread; }

// [opencl.host-functions.enqueue] The stream stops at a user event, which the function's thread completes.
cl_int HostFunctions::enqueue(cl_context context, cl_command_queue queue,
                              Function function, void* data, cl_event* last) {
  {
    std::lock_guard lock(mutex_);
    if (!started_) std::thread(&HostFunctions::run, this).detach();
    started_ = true;
  }
  cl_int code;
  const EventRef done = adopt(clCreateUserEvent(context, &code));
  if (code != CL_SUCCESS) return code;
  cl_event before = nullptr;
  code = clEnqueueMarkerWithWaitList(queue, 0, nullptr, &before);
  if (code != CL_SUCCESS) return code;
  const EventRef reached = adopt(before);
  const cl_event gate = done.get();
  code = clEnqueueBarrierWithWaitList(queue, 1, &gate, last);
  if (code != CL_SUCCESS) return code;
  auto call = std::make_unique<Call>(Call{this, function, data, done});
  code = clSetEventCallback(before, CL_COMPLETE, &becomeReady, call.get());
  if (code == CL_SUCCESS)
    call.release();
  else
    clSetUserEventStatus(done.get(), code);
  return code;
}

// [opencl.host-functions.callback] The callback only moves the call to the queue; after a failure it drops the call.
void CL_CALLBACK HostFunctions::becomeReady(cl_event, cl_int status,
                                            void* data) {
  const std::unique_ptr<Call> call(static_cast<Call*>(data));
  if (status < 0) {
    clSetUserEventStatus(call->done.get(), status);
    return;
  }
  HostFunctions& owner = *call->owner;
  std::lock_guard lock(owner.mutex_);
  owner.ready_.push_back(std::move(*call));
  owner.woken_.notify_one();
}

// [opencl.host-functions.run] One thread of each device runs the functions, one after the other.
void HostFunctions::run() {
  is_host_function_thread = true;
  for (std::unique_lock lock(mutex_);;) {
    woken_.wait(lock, [&] { return !ready_.empty(); });
    const Call call = std::move(ready_.front());
    ready_.pop_front();
    lock.unlock();
    call.function(call.data);
    clSetUserEventStatus(call.done.get(), CL_COMPLETE);
    lock.lock();
  }
}

// [-]
}  // namespace openreg::hardware
