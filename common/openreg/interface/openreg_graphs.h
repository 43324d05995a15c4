// SPDX-License-Identifier: BSD-3-Clause
// An optional part of a driver: what was launched once is recorded, and
// launched again with one call.
#pragma once

#include "openreg.h"

#ifdef __cplusplus
extern "C" {
#endif

// [common.graphs] A driver without graphs returns orErrorNotSupported from these functions.
/// Returned codes are those of openreg.h, and orErrorNotSupported from all of
/// these functions if the driver has no graphs. A driver must still define all
/// of them, because the backend links against this header.

// [common.graphs.capture] A captured stream records its commands instead of running them.
/// Which calls a capture forbids, besides those for its own streams: a call
/// that waits for the device, such as orFree or orMemcpy. In every mode, no
/// thread may make orDeviceSynchronize or orDeviceReset wait for the device of
/// the capture.
typedef enum orStreamCaptureMode {
  /// No thread may make it.
  orStreamCaptureModeGlobal = 0,
  /// The thread that began the capture may not make it.
  orStreamCaptureModeThreadLocal = 1,
  /// Every thread may make it.
  orStreamCaptureModeRelaxed = 2,
} orStreamCaptureMode;

/// The result of a capture.
typedef struct orGraph* orGraph_t;

/// Records what is enqueued on `stream` from now on. A stream that waits for an
/// event of the capture joins it. For a stream of a capture, these calls fail
/// with orErrorStreamCaptureUnsupported: synchronizing, querying or destroying
/// it or an event that was recorded in it, a copy of memory that is neither the
/// device's nor pinned, and launching a graph. A wait for an event from outside
/// fails with orErrorStreamCaptureIsolation. Such a call, and a forbidden one,
/// invalidates the capture: until it is ended, all commands for its streams
/// return orErrorStreamCaptureInvalidated.
/// @returns orErrorInvalidValue for the default stream and for a stream that is
/// being captured.
OPENREG_EXPORT orError_t orStreamBeginCapture(
    orStream_t stream, orStreamCaptureMode mode) OPENREG_NOEXCEPT;
/// Ends the capture that `stream` began, whatever it returns: all streams of
/// the capture run commands again.
/// @returns orErrorStreamCaptureInvalidated with the sentence of the first
/// error, and orErrorStreamCaptureUnjoined if a stream of the capture has
/// commands for which `stream` does not wait. Then `graph` becomes null.
OPENREG_EXPORT orError_t orStreamEndCapture(orStream_t stream,
                                            orGraph_t* graph) OPENREG_NOEXCEPT;
/// The number of the capture that `stream` takes part in, which no other one
/// has; 0 if there is none.
OPENREG_EXPORT orError_t orStreamGetCaptureId(orStream_t stream,
                                              uint64_t* id) OPENREG_NOEXCEPT;

// [common.graphs.thread-mode] A library that waits on a thread of its own says so, because it cannot choose the mode of a capture.
/// Exchanges `mode` with the calling thread's own, which is global at first.
/// With thread-local, the captures that other threads began forbid the thread
/// nothing; with relaxed, no capture does, and its waits invalidate none. So a
/// library can free memory on a thread of its own while its program captures.
/// Calls for the streams, the events and the device of a capture stay
/// forbidden. Starts nothing.
OPENREG_EXPORT orError_t
orThreadExchangeStreamCaptureMode(orStreamCaptureMode* mode) OPENREG_NOEXCEPT;

// [common.graphs.graph] A graph is a list of commands, and which of them must run before which.
OPENREG_EXPORT orError_t orGraphGetNodeCount(orGraph_t graph,
                                             size_t* count) OPENREG_NOEXCEPT;
/// Writes the graph to a file in the language of Graphviz.
OPENREG_EXPORT orError_t orGraphDebugDotPrint(orGraph_t graph, const char* path)
    OPENREG_NOEXCEPT;
/// Executable graphs that were made of it stay.
OPENREG_EXPORT orError_t orGraphDestroy(orGraph_t graph) OPENREG_NOEXCEPT;

// [common.graphs.launch] An executable graph is one command for the host, however many nodes it has.
typedef struct orGraphExec* orGraphExec_t;

/// Prepares `graph` for launches. The graph may be destroyed afterwards.
OPENREG_EXPORT orError_t orGraphInstantiate(orGraphExec_t* exec,
                                            orGraph_t graph) OPENREG_NOEXCEPT;
/// Enqueues the graph. Its nodes read and write the addresses that were
/// captured, so this memory must still be allocated. Nodes that were captured
/// on different streams may run at the same time. A launch begins when the
/// launch before it has ended, on whichever stream.
/// @returns orErrorInvalidValue for a stream of another device.
OPENREG_EXPORT orError_t orGraphLaunch(orGraphExec_t exec,
                                       orStream_t stream) OPENREG_NOEXCEPT;
/// Launches that were enqueued before still run.
OPENREG_EXPORT orError_t orGraphExecDestroy(orGraphExec_t exec)
    OPENREG_NOEXCEPT;

// [-]
#ifdef __cplusplus
}
#endif
