// SPDX-License-Identifier: BSD-3-Clause
// The C interface of a driver, in the shape of CUDA's runtime: what every
// vendor's driver has. Kernels are in openreg_kernels.h, optional parts in
// openreg_tools.h.
#pragma once

#include <stddef.h>
#include <stdint.h>

// [common.api] Linux only: the mappings need memfd_create.
#if defined(_WIN32)
#error "openreg needs memfd_create and mmap; it is built and tested on Linux."
#endif
/// What the library shows to its users.
#define OPENREG_EXPORT __attribute__((visibility("default")))
#ifdef __cplusplus
/// No function throws.
#define OPENREG_NOEXCEPT noexcept
#else
#define OPENREG_NOEXCEPT
#endif

#ifdef __cplusplus
extern "C" {
#endif

// [common.api.error] Every function returns one of these codes.
/// The outcome of a call. Unless a function says otherwise, a call that fails
/// changes nothing; a null output pointer, a size past the end of a block and a
/// pointer that is not the beginning of one return orErrorInvalidValue; a
/// stream or event that does not exist returns orErrorInvalidResourceHandle; a
/// wrong device returns orErrorInvalidDevice; and any call that needs the
/// device may return orErrorNoDevice, orErrorForked,
/// orErrorInvalidConfiguration, and the sticky orErrorLaunchFailure or
/// orErrorDeviceLost.
typedef enum orError_t {
  orSuccess = 0,
  orErrorUnknown = 1,
  /// Not an error: the work in question is still running.
  orErrorNotReady = 2,
  orErrorInvalidValue = 3,
  orErrorMemoryAllocation = 4,
  orErrorInvalidDevice = 5,
  orErrorNoDevice = 6,
  /// The stream or event was never created, or is destroyed.
  orErrorInvalidResourceHandle = 7,
  /// A pointer is not where the kind of copy says it is, there is no such kind,
  /// or the memory to set is not the device's.
  orErrorInvalidMemcpyDirection = 8,
  /// A kernel threw. Sticky: see `orDeviceReset`.
  orErrorLaunchFailure = 9,
  /// The calling process was forked from one that had started the device.
  orErrorForked = 10,
  /// An environment variable has a value that is not allowed.
  orErrorInvalidConfiguration = 11,
  /// The device is gone, and no reset brings it back.
  orErrorDeviceLost = 12,
  /// This driver does not have the optional function that was called.
  orErrorNotSupported = 13,
  /// Code that runs on a thread of the device called a function that waits for
  /// the device. See `orLaunchHostFunc`.
  orErrorNotPermitted = 14,
  // [common.api.error.capture] A stream that is captured refuses what it cannot record.
  /// The call cannot be recorded, and a stream is being captured. For this and
  /// the next three see `orStreamBeginCapture`.
  orErrorStreamCaptureUnsupported = 15,
  /// An earlier call made the capture useless.
  orErrorStreamCaptureInvalidated = 16,
  /// A stream of the capture was forked and not joined.
  orErrorStreamCaptureUnjoined = 17,
  /// A stream that is captured would wait for one that is not.
  orErrorStreamCaptureIsolation = 18,
  // [common.api.error.refused] A kernel that refuses its arguments does not stop the device.
  /// A kernel refused its arguments. The device goes on. The next call that
  /// waits for the kernel's stream, for an event recorded there later, or for a
  /// stream that has waited for such an event returns this error, once.
  /// So does a stream that has waited for another device, which had failed.
  orErrorKernelRefused = 19,
} orError_t;

// [common.api.error-text] The text of an error belongs to the thread that made the call.
/// The enumerator's own name, such as "orErrorNotReady".
OPENREG_EXPORT const char* orGetErrorName(orError_t error) OPENREG_NOEXCEPT;
/// One sentence that is true of every occurrence of `error`.
OPENREG_EXPORT const char* orGetErrorString(orError_t error) OPENREG_NOEXCEPT;
/// What went wrong in the last call that failed on this thread, with values.
/// Ends in a full stop, unless it quotes a kernel. Valid until the next failure
/// on this thread.
OPENREG_EXPORT const char* orGetErrorDetail(void) OPENREG_NOEXCEPT;
/// Returns the last failure on this thread and resets it to orSuccess.
OPENREG_EXPORT orError_t orGetLastError(void) OPENREG_NOEXCEPT;
/// Returns the last failure on this thread and keeps it.
OPENREG_EXPORT orError_t orPeekAtLastError(void) OPENREG_NOEXCEPT;

// [common.api.device] Devices are numbered from 0; each thread has a current one.
/// The number of devices. Does not start the driver.
OPENREG_EXPORT orError_t orGetDeviceCount(int* count) OPENREG_NOEXCEPT;
/// The calling thread's current device; 0 until it chooses one.
OPENREG_EXPORT orError_t orGetDevice(int* device) OPENREG_NOEXCEPT;
/// @returns orErrorInvalidDevice if there is no such device. The detail says
/// its number and how many there are, as that of every other function does.
OPENREG_EXPORT orError_t orSetDevice(int device) OPENREG_NOEXCEPT;
/// Waits for all streams of the current device.
/// @returns the device's sticky error, if it has one, or a kernel's refusal.
OPENREG_EXPORT orError_t orDeviceSynchronize(void) OPENREG_NOEXCEPT;
/// Waits for all streams of the current device and forgets its sticky error.
/// Memory, streams and events stay as they are.
OPENREG_EXPORT orError_t orDeviceReset(void) OPENREG_NOEXCEPT;
/// The lowest and the highest priority; a smaller number is a higher priority.
OPENREG_EXPORT orError_t orDeviceGetStreamPriorityRange(
    int* leastPriority, int* greatestPriority) OPENREG_NOEXCEPT;

/// What does not change while the program runs.
typedef struct orDeviceProp {
  char name[64]; /**< for people */
  /// Bytes.
  size_t totalGlobalMem;
  /// How many streams run at the same time.
  int multiProcessorCount;
  /// Every address that orMalloc returns is a multiple of this.
  size_t textureAlignment;
} orDeviceProp;

/// Of any device, whichever is current.
OPENREG_EXPORT orError_t orGetDeviceProperties(orDeviceProp* properties,
                                               int device) OPENREG_NOEXCEPT;
/// Whether the device has started. All devices start together, at the first
/// call that does more than count or choose devices. This one does not start
/// them.
OPENREG_EXPORT orError_t orDeviceIsStarted(int device,
                                           int* started) OPENREG_NOEXCEPT;
/// Whether this process was forked from one in which a device had started.
OPENREG_EXPORT int orIsForked(void) OPENREG_NOEXCEPT;

// [common.api.memory] Device memory has addresses that the host cannot follow.
/// @returns orErrorMemoryAllocation if the current device has no room. Memory
/// of the host is used when a page is first written, not before. The
/// address is aligned to 512 bytes; a size of 0, and a call that fails, give a
/// null pointer.
OPENREG_EXPORT orError_t orMalloc(void** devPtr, size_t size) OPENREG_NOEXCEPT;
/// Waits for all pending work first, as cudaFree does, including that of other
/// devices, which may be copying from the block. Null is allowed. While one
/// thread frees a block, every other call refuses the block as if it were
/// freed.
OPENREG_EXPORT orError_t orFree(void* devPtr) OPENREG_NOEXCEPT;
/// Host memory that the device can copy to and from while the host goes on. Any
/// amount, until the host's memory or the addresses for it are used up.
/// @returns orErrorMemoryAllocation, and a null pointer, if the system gives no
/// more.
OPENREG_EXPORT orError_t orMallocHost(void** hostPtr,
                                      size_t size) OPENREG_NOEXCEPT;
/// Waits as `orFree` does. Null is allowed.
OPENREG_EXPORT orError_t orFreeHost(void* hostPtr) OPENREG_NOEXCEPT;
/// Free and total bytes of the current device.
OPENREG_EXPORT orError_t orMemGetInfo(size_t* free,
                                      size_t* total) OPENREG_NOEXCEPT;

// [common.api.memory.attributes] The driver knows every pointer that it handed out.
typedef enum orMemoryType {
  orMemoryTypeUnmanaged = 0,
  orMemoryTypeHost = 1,
  orMemoryTypeDevice = 2,
} orMemoryType;

/// What the driver knows of an address.
typedef struct orPointerAttributes {
  /// orMemoryTypeUnmanaged if the pointer is not one of the driver's.
  orMemoryType type;
  /// -1 unless `type` is orMemoryTypeDevice.
  int device;
  /// The beginning of the allocation and its size in bytes; null and 0 if the
  /// pointer is not one of the driver's.
  void* pointer;
  size_t size; /**< see `pointer` */
} orPointerAttributes;

/// Recognizes a pointer anywhere inside an allocation.
OPENREG_EXPORT orError_t orPointerGetAttributes(
    orPointerAttributes* attributes, const void* ptr) OPENREG_NOEXCEPT;

// [common.api.copy] Copies run on a stream, like kernels.
typedef enum orMemcpyKind {
  orMemcpyHostToHost = 0,
  orMemcpyHostToDevice = 1,
  orMemcpyDeviceToHost = 2,
  orMemcpyDeviceToDevice = 3,
} orMemcpyKind;

/// A handle may be destroyed on one thread while others use it: each call
/// either comes before the destruction, or returns
/// orErrorInvalidResourceHandle.
typedef struct orStream* orStream_t;
typedef struct orEvent* orEvent_t; /**< as `orStream_t` */

/// Copies on the default stream and waits. An address that orMalloc or
/// orMallocHost could return, but that is in no live block, returns
/// orErrorInvalidValue whatever the kind is. A size of 0 copies nothing, after
/// the stream, the kind and the devices were checked.
OPENREG_EXPORT orError_t orMemcpy(void* dst, const void* src, size_t count,
                                  orMemcpyKind kind) OPENREG_NOEXCEPT;
/// Enqueues a copy. Memory from `orMallocHost` must stay allocated until the
/// copy has run. Other host memory is read or written before the call returns.
OPENREG_EXPORT orError_t orMemcpyAsync(void* dst, const void* src, size_t count,
                                       orMemcpyKind kind,
                                       orStream_t stream) OPENREG_NOEXCEPT;
/// Enqueues a copy within a device or between two, which the numbers must name.
/// @returns orErrorInvalidDevice if there is no such device, and
/// orErrorInvalidValue if an address is in no block of the device named for it.
OPENREG_EXPORT orError_t orMemcpyPeerAsync(void* dst, int dstDevice,
                                           const void* src, int srcDevice,
                                           size_t count,
                                           orStream_t stream) OPENREG_NOEXCEPT;
/// Writes the low byte of `value` `count` times, and waits.
OPENREG_EXPORT orError_t orMemset(void* devPtr, int value,
                                  size_t count) OPENREG_NOEXCEPT;
/// The same, enqueued on `stream`.
OPENREG_EXPORT orError_t orMemsetAsync(void* devPtr, int value, size_t count,
                                       orStream_t stream) OPENREG_NOEXCEPT;

// [common.api.stream] A stream is a queue of commands; null names the current device's default stream.
/// The default stream does not wait for the other streams. The first command of
/// a device starts its threads, and returns orErrorUnknown if the system grants
/// none of them. A call that enqueues
/// a command returns before the command runs, but it may wait for room: a
/// stream holds about 4096 commands that have not run. Queries never wait.
OPENREG_EXPORT orError_t orStreamCreate(orStream_t* stream) OPENREG_NOEXCEPT;
/// A priority outside the range is clamped to it. `flags` must be 0. A stream
/// runs nothing as long as streams of higher priority keep all threads of the
/// device busy.
OPENREG_EXPORT orError_t orStreamCreateWithPriority(
    orStream_t* stream, unsigned int flags, int priority) OPENREG_NOEXCEPT;
/// As it was clamped; 0 of a default stream.
OPENREG_EXPORT orError_t orStreamGetPriority(orStream_t stream,
                                             int* priority) OPENREG_NOEXCEPT;
/// The device that was current when the stream was created.
OPENREG_EXPORT orError_t orStreamGetDevice(orStream_t stream,
                                           int* device) OPENREG_NOEXCEPT;
/// A handle of the default stream that is valid whichever device is current.
OPENREG_EXPORT orError_t orDeviceGetDefaultStream(orStream_t* stream,
                                                  int device) OPENREG_NOEXCEPT;
/// The handle is invalid at once; commands that were enqueued before still run.
/// @returns orErrorInvalidResourceHandle for a default stream, too
OPENREG_EXPORT orError_t orStreamDestroy(orStream_t stream) OPENREG_NOEXCEPT;
/// @returns orErrorNotReady while work is pending; also for the moment between
/// the end of an event that was recorded last and the end of its recording.
/// Otherwise as orStreamSynchronize.
OPENREG_EXPORT orError_t orStreamQuery(orStream_t stream) OPENREG_NOEXCEPT;
/// Waits for all commands of the stream.
/// @returns the device's sticky error, if it has one, or what a kernel refused
/// on the stream, or on one that it waited for.
OPENREG_EXPORT orError_t orStreamSynchronize(orStream_t stream)
    OPENREG_NOEXCEPT;
// [common.api.stream.order] A stream can wait for an event of another, and run a function of the host.
/// Commands enqueued on `stream` from now on wait until the latest recording of
/// `event` completes. They do not wait for an event that was never recorded.
/// `flags` must be 0.
OPENREG_EXPORT orError_t orStreamWaitEvent(orStream_t stream, orEvent_t event,
                                           unsigned int flags) OPENREG_NOEXCEPT;
/// Enqueues a function that runs on a thread of the driver, after the commands
/// before it and before those after it. It is not called if this returns an
/// error. The device cannot wait for itself: in
/// the function, as in a kernel, every call that waits for a stream, an event
/// or a device returns orErrorNotPermitted and does nothing, even if nothing is
/// pending. That includes orFree, orFreeHost, orDeviceReset, the copies and
/// sets that wait, and the asynchronous copy of pageable memory. Calls that
/// only enqueue, query or allocate work. So does exit(), which drops pending
/// work.
OPENREG_EXPORT orError_t orLaunchHostFunc(orStream_t stream,
                                          void (*function)(void*),
                                          void* data) OPENREG_NOEXCEPT;

// [common.api.captured] A stream may record its commands instead of running them.
typedef enum orStreamCaptureStatus {
  orStreamCaptureStatusNone = 0,
  orStreamCaptureStatusActive = 1,
  orStreamCaptureStatusInvalidated = 2,
} orStreamCaptureStatus;

/// Whether the stream records its commands instead of running them, which
/// openreg_graphs.h can make it do. Never, if the driver has no graphs.
OPENREG_EXPORT orError_t orStreamIsCapturing(
    orStream_t stream, orStreamCaptureStatus* status) OPENREG_NOEXCEPT;

// [common.api.event] An event marks a point in a stream.
typedef enum orEventFlags {
  orEventDisableTiming = 0x0,
  orEventEnableTiming = 0x1,
} orEventFlags;

/// With timing, and not recorded.
OPENREG_EXPORT orError_t orEventCreate(orEvent_t* event) OPENREG_NOEXCEPT;
/// `flags` is one of orEventFlags.
OPENREG_EXPORT orError_t
orEventCreateWithFlags(orEvent_t* event, unsigned int flags) OPENREG_NOEXCEPT;
/// Streams and threads that wait for the event keep waiting for its recording.
OPENREG_EXPORT orError_t orEventDestroy(orEvent_t event) OPENREG_NOEXCEPT;
/// An event belongs to the device of its first recording.
/// @returns orErrorInvalidValue for a stream of another device.
OPENREG_EXPORT orError_t orEventRecord(orEvent_t event,
                                       orStream_t stream) OPENREG_NOEXCEPT;
/// Waits for the latest recording. An event that was never recorded is ready.
/// @returns as orStreamSynchronize.
OPENREG_EXPORT orError_t orEventSynchronize(orEvent_t event) OPENREG_NOEXCEPT;
/// @returns orErrorNotReady until the latest recording completes, and otherwise
/// as orEventSynchronize.
OPENREG_EXPORT orError_t orEventQuery(orEvent_t event) OPENREG_NOEXCEPT;
/// Milliseconds from `start` to `end`, both created with timing, and recorded
/// on the same device.
OPENREG_EXPORT orError_t orEventElapsedTime(float* ms, orEvent_t start,
                                            orEvent_t end) OPENREG_NOEXCEPT;

// [-]
#ifdef __cplusplus
}
#endif
