// SPDX-License-Identifier: BSD-3-Clause
// The optional parts of a driver, for tests, profilers and other processes.
#pragma once

#include "openreg.h"

#ifdef __cplusplus
extern "C" {
#endif

// [common.tools] A driver without one of these parts returns orErrorNotSupported from its functions.
/// Returned codes are those of openreg.h, and orErrorNotSupported from any
/// function that the driver does not have. A driver must still define all of
/// them, because the backend links against this header.

// [common.tools.inject] Fault injection makes a chosen call fail.
/// Schedules faults, and cancels those of earlier calls. An order is a list of
/// parts with commas between them and no spaces:
///
/// - `alloc:N`: the N-th orMalloc from now on has no memory;
/// - `copy:N`: the N-th copy fails its device, as a kernel that throws does;
/// - `launch:N`: the same for the N-th launch;
/// - `create:N`: the N-th creation of a stream, an event, a block of pinned
///   memory or an executable graph has no memory;
/// - `alloc:N+` and the like: the N-th and all later ones fail;
/// - `lost:D@N`: device D is lost at its N-th launch or copy from now on, and
///   returns orErrorDeviceLost from then on.
///
/// N is 1 or more, and D is the number of a device. Parts add up: after
/// `alloc:1,alloc:3` the first and the third allocation fail. Setting memory
/// counts as a copy. Calls of all threads are counted together. A launch that
/// is captured counts then, and fails each time its graph runs. The launch of a
/// graph counts as one; if it fails, no node runs.
///
/// The environment variable OPENREG_INJECT has the same form and is read once.
/// An empty order, or null, cancels all faults.
/// @returns orErrorInvalidConfiguration for anything else, and changes nothing.
OPENREG_EXPORT orError_t orInject(const char* order) OPENREG_NOEXCEPT;

// [common.tools.wait-callback] A thread can look at something else while it waits, such as an interrupt by the user.
/// Returns 0 to go on waiting, and anything else to end the wait. Must not
/// throw.
typedef int (*orWaitCallback)(void* data);

/// From now on, when the calling thread waits in orDeviceSynchronize,
/// orStreamSynchronize or orEventSynchronize, it calls `callback(data)` every
/// `nanoseconds`, without a lock. If the callback ends the wait, the function
/// returns orErrorNotReady. So do the functions that copy or set and then wait;
/// their work stays enqueued, and uses the host's memory later. The callback
/// may call functions of the driver and set another callback for them; those
/// that wait have none otherwise. Null, as at the beginning, is no callback.
/// Without device threads (OPENREG_SCHEDULE=seed:N or order:A,B) none is ever
/// called.
/// @returns orErrorInvalidValue if `nanoseconds` is not positive.
OPENREG_EXPORT orError_t orSetWaitCallback(int64_t nanoseconds,
                                           orWaitCallback callback,
                                           void* data) OPENREG_NOEXCEPT;

// [common.tools.refusals] A refusal is reported once, and should not be lost to a call that has nobody to tell.
/// Whether the calling thread is told of no kernel's refusal, from now on: its
/// calls return orSuccess, and the refusal stays for another call. For code
/// that waits without the program's knowledge. Calls nest.
OPENREG_EXPORT orError_t orLeaveRefusals(int is_on) OPENREG_NOEXCEPT;

// [common.tools.record] A record says what the host asked for or what the device did, and when.
typedef enum orRecordPhase {
  /// On the host's thread, before the device can begin the command.
  orCommandEnqueued = 0,
  /// On the device's thread. A stream that waits for an event begins the wait
  /// when all earlier commands of the stream have run.
  orCommandBegins = 1,
  orCommandEnds = 2,
  /// On the host's thread, when a function of the driver returns.
  orCallReturns = 3,
  /// On the host's thread, when a range that a program marked ends.
  orRangeEnds = 4,
} orRecordPhase;

/// What a call does, or a command.
typedef enum orOperation {
  orOperationLaunch = 0,
  orOperationHostFunction = 1,
  orOperationCopy = 2,
  orOperationSet = 3,
  orOperationRecord = 4,
  orOperationWait = 5,
  orOperationSynchronize = 6,
  orOperationAllocate = 7,
  orOperationFree = 8,
  orOperationRange = 9,
  orOperationGraph = 10,
} orOperation;

// [common.tools.record.fields] A record of an end repeats the data of the beginning, so an observer need not remember it.
typedef struct orRecord {
  orRecordPhase phase;   /**< which moment this is */
  orOperation operation; /**< of which call or command */
  /// The number of a command, the same in all of its phases and in the call
  /// that enqueued it, and of no other command. 0 if a call enqueued none. The
  /// nodes of a graph have the number of its launch; they begin and end between
  /// its beginning and its end.
  uint64_t correlation;
  /// Of a command: the kernel's name, "memcpy", "memset", "record", "wait",
  /// "wait_value", "write_value" or "graph".
  /// Of a call: the function, such as "orMemcpyAsync". Valid until the observer
  /// returns.
  const char* name;
  /// Of a call that enqueued no command: the current device, and null.
  int device;
  orStream_t stream; /**< see `device` */
  /// Of a copy, a memset, an allocation or a free; otherwise 0.
  size_t bytes;
  /// Of a copy; otherwise -1.
  int direction;
  /// Of an allocation or a free; null if an allocation failed.
  const void* pointer;
  /// Nanoseconds of the steady clock. They differ in the phases `Ends` and
  /// `Returns`.
  int64_t begin;
  int64_t end; /**< as `begin` */
} orRecord;

// [common.tools.observe] An observer sees a command, call or range from beginning to end, or not at all.
/// Called on the thread that the phase names. Must not call the driver, must
/// not throw, and must not wait for a thread that adds or removes an observer.
typedef void (*orObserve)(const orRecord* record, void* data);
typedef struct orObserver* orObserver_t; /**< until it is removed */

/// Observes everything that begins from now on: what began before is not
/// reported when it ends. Any number of observers sees the same records.
OPENREG_EXPORT orError_t orAddObserver(orObserver_t* observer,
                                       orObserve observe,
                                       void* data) OPENREG_NOEXCEPT;
/// Returns after the last call of the observer, so `data` may then go away.
/// Commands that are in flight are not reported any more.
/// @returns orErrorInvalidResourceHandle if there is no such observer.
OPENREG_EXPORT orError_t orRemoveObserver(orObserver_t observer)
    OPENREG_NOEXCEPT;

// [common.tools.range] A program can mark ranges of its own, which the observers see.
/// Begins a range on the calling thread. The name is copied; null is "".
OPENREG_EXPORT orError_t orRangePush(const char* name) OPENREG_NOEXCEPT;
/// Ends the range that the thread began last.
/// @returns orErrorInvalidValue if it has begun none.
OPENREG_EXPORT orError_t orRangePop(void) OPENREG_NOEXCEPT;

// [common.tools.access] A launch says what its kernel reads and writes, because the driver cannot see that in its arguments.
/// A tensor in memory: `dims` dimensions of elements. None is one element.
typedef struct orAccess {
  const void* pointer;    /**< as orMalloc or orMallocHost returned it */
  size_t element_bytes;   /**< of one element; 0: all to the block's end */
  int dims;               /**< how many sizes and strides there are */
  const int64_t* sizes;   /**< in elements */
  const int64_t* strides; /**< in elements, and not negative */
  int is_write;           /**< whether it may be written, and not only read */
} orAccess;

/// Stores the address of a number that is not 0 while accesses are wanted. It
/// is read without a call, so that a launch costs nothing more otherwise.
OPENREG_EXPORT orError_t orAccessFlag(const int** flag) OPENREG_NOEXCEPT;
/// Adds an access to the next kernel that the calling thread enqueues. Null
/// takes back those that were added. Copies and memsets add their own.
OPENREG_EXPORT orError_t orAnnounceAccess(const orAccess* access)
    OPENREG_NOEXCEPT;
/// The host itself touches the memory now, in an operator called `name`.
OPENREG_EXPORT orError_t
orAnnounceHostAccess(const char* name, const orAccess* access) OPENREG_NOEXCEPT;
/// An allocator hands out a part of its memory, perhaps not for the first time.
OPENREG_EXPORT orError_t orAnnounceBlock(const void* pointer,
                                         size_t bytes) OPENREG_NOEXCEPT;

// [common.tools.races] Two commands that share memory race if one of them writes and neither waits for the other.
/// A command that a sanitizer found.
typedef struct orFoundCommand {
  const char* name;    /**< of the kernel, or of the host's operator */
  int device;          /**< -1: the host */
  int64_t stream;      /**< its handle as a number; 0 is the default stream */
  int is_write;        /**< otherwise it reads */
  const void* pointer; /**< the first byte that it touches */
  size_t bytes;        /**< to the last byte that it touches; 0 if not known */
  int64_t place;       /**< as `here` returned it at the launch */
} orFoundCommand;

/// Two commands that race, or one that touched what is not in a block. Pointers
/// are valid until the visit ends.
typedef struct orFinding {
  int is_race;            /**< otherwise there is no other command */
  orFoundCommand command; /**< of two, the one that was enqueued later */
  orFoundCommand other;   /**< and the earlier one */
  const void* block;    /**< the block, or the nearest; null if there is none */
  size_t block_bytes;   /**< its size */
  int was_freed;        /**< before, or between the two commands */
  int64_t allocated_at; /**< as `here` returned it at the allocation, */
  int64_t freed_at;     /**< and when it was freed; 0 if not known */
  const char* sentence; /**< what happened, or which wait is missing */
} orFinding;

// [common.tools.races.find] The list of findings grows until it is cleared.
/// Finds races from now on, or no longer. OPENREG_SANITIZE=races finds them
/// from the beginning. Each is printed to stderr when its second command is
/// enqueued, once for a pair of places; a process in which any was found ends
/// with code 66 in place of 0. Only what the program asks depends on the time.
OPENREG_EXPORT orError_t orFindRaces(int is_on) OPENREG_NOEXCEPT;
/// Visits what was found since it was last cleared. `visit` must not call the
/// driver.
OPENREG_EXPORT orError_t orVisitFindings(void (*visit)(const orFinding* finding,
                                                       void* data),
                                         void* data) OPENREG_NOEXCEPT;
/// Forgets it, so that the process ends as if nothing had been found.
OPENREG_EXPORT orError_t orClearFindings(void) OPENREG_NOEXCEPT;
/// How the driver learns which line of the program enqueues: `here` returns a
/// number for the line that the calling thread is at, or 0, and `describe`
/// writes its name, with a null at the end. Null, twice, ends that.
OPENREG_EXPORT orError_t orSetPlaces(
    int64_t (*here)(void),
    void (*describe)(int64_t place, char* text, size_t bytes)) OPENREG_NOEXCEPT;

// [common.tools.races.order] What a thread learns, and what it waits for, is not always an order of commands.
/// Whether the calling thread only watches, from now on: what it learns of
/// events and streams by asking puts no later command in order. For a thread of
/// a library that looks whether work is done and enqueues nothing because of
/// it. Calls nest.
OPENREG_EXPORT orError_t orWatchOnly(int is_on) OPENREG_NOEXCEPT;
/// An allocator hands these bytes to no new owner before `stream` has done what
/// is enqueued now, so none of that races with the new owner's commands.
OPENREG_EXPORT orError_t orAnnounceSettled(const void* pointer, size_t bytes,
                                           orStream_t stream) OPENREG_NOEXCEPT;
/// The number for which the calling thread enqueues its next wait is written by
/// another process, so no stream of this one comes before what follows it.
OPENREG_EXPORT orError_t orAnnouncePeer(void) OPENREG_NOEXCEPT;

// [common.tools.guards] Memory that is guarded reports each touch outside of a block in use.
/// Whether OPENREG_SANITIZE has `memory` in its list. Then device code can
/// touch blocks in use only. A command that touches anything else fails its
/// device, as a kernel that throws does, and the sentence is printed to stderr.
/// A process in which that happened ends with code 66 in place of 0. An
/// allocator should take each of its own blocks from orMalloc then. The call
/// starts nothing.
OPENREG_EXPORT orError_t orMemoryIsGuarded(int* is_guarded) OPENREG_NOEXCEPT;
/// Frees a guarded block without waiting: work of `stream` that is enqueued
/// already may still use it, and what comes later is reported.
/// @returns orErrorNotSupported if memory is not guarded,
/// orErrorStreamCaptureUnsupported if the stream is being captured.
OPENREG_EXPORT orError_t orRetireBlock(void* devPtr,
                                       orStream_t stream) OPENREG_NOEXCEPT;

// [common.tools.steps] Under a schedule that is chosen, a program can be told which other ones there are.
/// One step that ran: a kernel, a copy, a node of a graph, an access of the
/// host's to pinned memory, or a query that the host made. Pointers are valid
/// until the visit ends.
typedef struct orStep {
  const char* stream;      /**< as OPENREG_SCHEDULE=order names it, or "host" */
  const char* name;        /**< of the kernel, operator or function */
  int device;              /**< -1: the host */
  int64_t handle;          /**< the stream's; 0 is the default stream */
  int64_t place;           /**< as `here` returned it at the launch, or 0 */
  const char* ready;       /**< the streams that it was chosen from: "A,C" */
  const uint64_t* before;  /**< how many steps of the host, of A, of B ...
                                come before it in every order */
  size_t streams;          /**< how many counts there are */
  const size_t* conflicts; /**< numbers of earlier steps, counted from 0, that
                                touch the same memory, or of which a
                                query asks, and that could be later */
  size_t conflict_count;   /**< how many there are */
} orStep;

/// Visits the steps that have run since the start, in their order. There are
/// none unless OPENREG_SCHEDULE=order:... is set. `visit` must not call the
/// driver.
OPENREG_EXPORT orError_t orVisitSteps(void (*visit)(const orStep* step,
                                                    void* data),
                                      void* data) OPENREG_NOEXCEPT;

// [common.tools.ipc] Another process can open a block of device memory.
typedef struct orIpcMemHandle_t {
  char reserved[64]; /**< bytes to send to the other process as they are */
} orIpcMemHandle_t;

/// A handle that another process can open while this one lives and the block
/// is not freed. `devPtr` is what orMalloc returned.
OPENREG_EXPORT orError_t orIpcGetMemHandle(orIpcMemHandle_t* handle,
                                           void* devPtr) OPENREG_NOEXCEPT;
/// Maps the other process's block into this one. It is device memory like any
/// other, but it is closed and not freed. A handle that was damaged or invented
/// is refused: the memory must be another device memory's, and the block in it.
/// @returns orErrorInvalidResourceHandle if the handle names no such memory or
/// its process has ended, orErrorMemoryAllocation if there is no address left.
OPENREG_EXPORT orError_t
orIpcOpenMemHandle(void** devPtr, orIpcMemHandle_t handle) OPENREG_NOEXCEPT;
/// Waits for all pending work first, as orFree does.
OPENREG_EXPORT orError_t orIpcCloseMemHandle(void* devPtr) OPENREG_NOEXCEPT;

// [-]
#ifdef __cplusplus
}
#endif
