// SPDX-License-Identifier: BSD-3-Clause
// The C interface of the simulated device, in the shape of CUDA's runtime.
#pragma once

#include <stddef.h>
#include <stdint.h>

// [common.api] Linux only: the mappings need memfd_create.
#if defined(_WIN32)
#error "openreg needs memfd_create and mmap; it is built and tested on Linux."
#endif
#define OPENREG_EXPORT __attribute__((visibility("default")))

#ifdef __cplusplus
extern "C" {
#endif

// [common.api.error] Every function answers with one of these.
/// What a call came to. A call that fails changes nothing. Unless a function
/// says otherwise: a null place for an answer, a size past the end of a block
/// and a pointer that is not the beginning of one are orErrorInvalidValue; a
/// stream or event that is not alive is orErrorInvalidResourceHandle; a wrong
/// device is orErrorInvalidDevice; and any call that needs the device may
/// answer orErrorNoDevice, orErrorForked, orErrorInvalidConfiguration, and the
/// sticky orErrorLaunchFailure or orErrorDeviceLost.
typedef enum orError_t {
  orSuccess = 0,
  orErrorUnknown = 1,
  /// Not an error: the work that was asked about is still running.
  orErrorNotReady = 2,
  orErrorInvalidValue = 3,
  orErrorMemoryAllocation = 4,
  orErrorInvalidDevice = 5,
  orErrorNoDevice = 6,
  /// The stream or event was never created, or is destroyed.
  orErrorInvalidResourceHandle = 7,
  /// The pointer is not where the kind of copy says it is.
  orErrorInvalidMemcpyDirection = 8,
  /// A kernel threw. Sticky: see `orDeviceReset`.
  orErrorLaunchFailure = 9,
  /// The calling process was forked from one that had started the device.
  orErrorForked = 10,
  /// An environment variable has a value that is not allowed.
  orErrorInvalidConfiguration = 11,
  /// The device is gone, and no reset brings it back.
  orErrorDeviceLost = 12,
} orError_t;

// [common.api.error-text] What can be asked about a failure.
/// The enumerator's own name, such as "orErrorNotReady".
OPENREG_EXPORT const char* orGetErrorName(orError_t error);
/// One sentence that is true of every occurrence of `error`.
OPENREG_EXPORT const char* orGetErrorString(orError_t error);
/// What went wrong in the last call that failed on this thread, with values.
/// Valid until the next failure on this thread.
OPENREG_EXPORT const char* orGetErrorDetail(void);
/// The last failure on this thread, which is forgotten by asking.
OPENREG_EXPORT orError_t orGetLastError(void);
/// The same, without forgetting.
OPENREG_EXPORT orError_t orPeekAtLastError(void);

// [common.api.device] Devices are numbered from 0; each thread has a current one.
/// How many devices there are. Starts nothing.
OPENREG_EXPORT orError_t orGetDeviceCount(int* count);
OPENREG_EXPORT orError_t orGetDevice(int* device);
/// @returns orErrorInvalidDevice if there is no such device.
OPENREG_EXPORT orError_t orSetDevice(int device);
/// Waits for all streams of the current device.
/// @returns the device's sticky error, if it has one.
OPENREG_EXPORT orError_t orDeviceSynchronize(void);
/// Waits for all streams of the current device and forgets its sticky error.
/// Memory, streams and events stay as they are.
OPENREG_EXPORT orError_t orDeviceReset(void);
/// The lowest and the highest priority; a smaller number is a higher priority.
OPENREG_EXPORT orError_t orDeviceGetStreamPriorityRange(int* leastPriority,
                                                        int* greatestPriority);
/// A number that grows with the interface: 1000 * major + 10 * minor.
OPENREG_EXPORT orError_t orDriverGetVersion(int* version);

typedef struct orDeviceProp {
  char name[64];
  /// Bytes.
  size_t totalGlobalMem;
  /// How many streams run at a time.
  int multiProcessorCount;
  /// Every address that orMalloc returns is a multiple of this.
  size_t textureAlignment;
} orDeviceProp;

OPENREG_EXPORT orError_t orGetDeviceProperties(orDeviceProp* properties,
                                               int device);
/// Whether the device has started, that is, whether anything but counting and
/// choosing devices was ever asked of one: all start together. Never starts it.
OPENREG_EXPORT orError_t orDeviceIsStarted(int device, int* started);
/// Whether this process was forked from one in which a device had started.
OPENREG_EXPORT int orIsForked(void);

// [common.api.memory] Device memory has addresses that the host cannot follow.
/// @returns orErrorMemoryAllocation if the current device has no room. The
/// address is aligned to 512 bytes; a size of 0 gives a null pointer.
OPENREG_EXPORT orError_t orMalloc(void** devPtr, size_t size);
/// Waits for all pending work first, as cudaFree does: also for that of other
/// devices, which may copy from here. Null is fine.
OPENREG_EXPORT orError_t orFree(void* devPtr);
/// Host memory that the device can copy from while the host goes on.
OPENREG_EXPORT orError_t orMallocHost(void** hostPtr, size_t size);
OPENREG_EXPORT orError_t orFreeHost(void* hostPtr);
/// Free and total bytes of the current device.
OPENREG_EXPORT orError_t orMemGetInfo(size_t* free, size_t* total);

typedef enum orMemoryType {
  orMemoryTypeUnmanaged = 0,
  orMemoryTypeHost = 1,
  orMemoryTypeDevice = 2,
} orMemoryType;

typedef struct orPointerAttributes {
  orMemoryType type;
  /// -1 unless `type` is orMemoryTypeDevice.
  int device;
  /// Where the allocation begins, and its size in bytes; null and 0 if the
  /// pointer is not ours.
  void* pointer;
  size_t size;
} orPointerAttributes;

/// Recognises a pointer anywhere inside an allocation.
OPENREG_EXPORT orError_t orPointerGetAttributes(orPointerAttributes* attributes,
                                                const void* ptr);
/// Lets the host read and write a block under its own addresses, for debugging;
/// `orMemoryProtect` takes it back. The pages that the block is on count whole.
OPENREG_EXPORT orError_t orMemoryUnprotect(void* devPtr);
OPENREG_EXPORT orError_t orMemoryProtect(void* devPtr);
/// How far the addresses that device code uses are from those of `orMalloc`.
OPENREG_EXPORT ptrdiff_t orDeviceWindow(void);

// [common.api.copy] Copies run on a stream, like everything else.
typedef enum orMemcpyKind {
  orMemcpyHostToHost = 0,
  orMemcpyHostToDevice = 1,
  orMemcpyDeviceToHost = 2,
  orMemcpyDeviceToDevice = 3,
} orMemcpyKind;

typedef struct orStream* orStream_t;
typedef struct orEvent* orEvent_t;

/// Copies on the default stream and waits.
OPENREG_EXPORT orError_t orMemcpy(void* dst, const void* src, size_t count,
                                  orMemcpyKind kind);
/// Enqueues a copy. Host memory from `orMallocHost` must stay alive until the
/// copy has run. Other host memory need not: a source is read before the call
/// returns, and a destination is written before it returns.
OPENREG_EXPORT orError_t orMemcpyAsync(void* dst, const void* src, size_t count,
                                       orMemcpyKind kind, orStream_t stream);
/// Between two devices, or within one; the numbers must be those of the blocks.
OPENREG_EXPORT orError_t orMemcpyPeer(void* dst, int dstDevice, const void* src,
                                      int srcDevice, size_t count);
OPENREG_EXPORT orError_t orMemcpyPeerAsync(void* dst, int dstDevice,
                                           const void* src, int srcDevice,
                                           size_t count, orStream_t stream);
OPENREG_EXPORT orError_t orMemset(void* devPtr, int value, size_t count);
OPENREG_EXPORT orError_t orMemsetAsync(void* devPtr, int value, size_t count,
                                       orStream_t stream);

// [common.api.stream] A stream is a queue; null names the current device's default one.
/// The default stream is a queue like the others: it does not wait for them.
OPENREG_EXPORT orError_t orStreamCreate(orStream_t* stream);
/// A priority outside the range is moved to its nearer end. `flags` must be 0.
OPENREG_EXPORT orError_t orStreamCreateWithPriority(orStream_t* stream,
                                                    unsigned int flags,
                                                    int priority);
OPENREG_EXPORT orError_t orStreamGetPriority(orStream_t stream, int* priority);
OPENREG_EXPORT orError_t orStreamGetDevice(orStream_t stream, int* device);
/// The default stream's own handle, good whichever device is current.
OPENREG_EXPORT orError_t orDeviceGetDefaultStream(orStream_t* stream,
                                                  int device);
/// The handle dies at once; work that was enqueued before still runs.
OPENREG_EXPORT orError_t orStreamDestroy(orStream_t stream);
/// @returns orErrorNotReady while work is pending.
OPENREG_EXPORT orError_t orStreamQuery(orStream_t stream);
OPENREG_EXPORT orError_t orStreamSynchronize(orStream_t stream);
/// Work enqueued on `stream` from now on waits until what `event` recorded
/// last has happened. An event never recorded makes nothing wait.
OPENREG_EXPORT orError_t orStreamWaitEvent(orStream_t stream, orEvent_t event,
                                           unsigned int flags);

// [common.api.event] An event marks a point in a stream.
typedef enum orEventFlags {
  orEventDisableTiming = 0x0,
  orEventEnableTiming = 0x1,
} orEventFlags;

OPENREG_EXPORT orError_t orEventCreate(orEvent_t* event);
OPENREG_EXPORT orError_t orEventCreateWithFlags(orEvent_t* event,
                                                unsigned int flags);
/// Those who wait for the event go on waiting for what it recorded.
OPENREG_EXPORT orError_t orEventDestroy(orEvent_t event);
/// Event and stream must be of one device.
OPENREG_EXPORT orError_t orEventRecord(orEvent_t event, orStream_t stream);
OPENREG_EXPORT orError_t orEventSynchronize(orEvent_t event);
/// @returns orErrorNotReady until what was recorded last has happened; an
/// event never recorded is ready.
OPENREG_EXPORT orError_t orEventQuery(orEvent_t event);
/// Milliseconds from `start` to `end`, both created with timing and recorded.
OPENREG_EXPORT orError_t orEventElapsedTime(float* ms, orEvent_t start,
                                            orEvent_t end);

// [common.api.launch] A kernel is a function and the bytes it works on.
/// How to run one kind of kernel. Must outlive every launch.
typedef struct orKernel {
  /// What errors call it.
  const char* name;
  /// The size of its arguments in bytes; at most `orMaxArgumentBytes`.
  size_t bytes;
  /// Moves arguments into the queue.
  void (*move)(void* to, void* from);
  /// Runs on a thread of the device.
  void (*run)(void* arguments);
  /// Called once for arguments that were moved, whether they ran or not.
  void (*destroy)(void* arguments);
} orKernel;

enum { orMaxArgumentBytes = 1280 };

/// Enqueues a function of the host, which must not call openreg.
OPENREG_EXPORT orError_t orLaunchHostFunc(orStream_t stream,
                                          void (*function)(void*), void* data);
/// Enqueues a kernel; `name`, unless null, is used instead of `kernel->name`
/// and must outlive the launch.
OPENREG_EXPORT orError_t orLaunchCommand(const orKernel* kernel,
                                         const char* name, void* arguments,
                                         orStream_t stream);

// [-]
#ifdef __cplusplus
}
#endif
