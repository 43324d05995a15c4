// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/profiler/races/places.h"

#include <pybind11/pybind11.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <mutex>
#include <unordered_map>
#include <utility>

namespace openreg {
namespace {

// [profiler.races.places.state] A line gets its number when it is first met, and keeps it.
/// The names are read without Python's lock, so they have one of their own.
struct Lines {
  std::mutex mutex;
  std::vector<std::string> skipped;
  std::map<std::pair<PyObject*, int>, int64_t> numbers;
  std::vector<std::string> names{""};
  /// Whether a file is PyTorch's. Holds a reference, so the key stays valid.
  std::unordered_map<PyObject*, bool> is_skipped;
};

Lines& lines() {
  static Lines& lines = *new Lines;
  return lines;
}

bool isSkipped(PyObject* file) {
  std::lock_guard lock(lines().mutex);
  auto [known, is_new] = lines().is_skipped.try_emplace(file);
  if (is_new) {
    Py_INCREF(file);
    const char* name = PyUnicode_AsUTF8(file);
    const std::string text = name ? name : "";
    known->second = std::any_of(
        lines().skipped.begin(), lines().skipped.end(),
        [&](const std::string& prefix) { return text.starts_with(prefix); });
  }
  return known->second;
}

// [profiler.races.places.number] Only the two look-ups hold the lock, because making a frame object may free tensors.
int64_t numberOfLine(PyObject* file, int line) {
  std::lock_guard lock(lines().mutex);
  auto [known, is_new] = lines().numbers.try_emplace({file, line});
  if (is_new) {
    known->second = static_cast<int64_t>(lines().names.size());
    const char* name = PyUnicode_AsUTF8(file);
    lines().names.push_back(std::string(name ? name : "?") + ":" +
                            std::to_string(line));
  }
  return known->second;
}

// [profiler.races.places.here] The innermost line of the program; in a thread of PyTorch's, which has none, the innermost one.
int64_t here() {
  if (!Py_IsInitialized() || !PyGILState_GetThisThreadState()) return 0;
  const pybind11::gil_scoped_acquire gil;
  PyFrameObject* frame = PyThreadState_GetFrame(PyThreadState_Get());
  int64_t number = 0;
  std::pair<PyObject*, int> innermost{};
  while (frame && !number) {
    PyCodeObject* code = PyFrame_GetCode(frame);
    if (!isSkipped(code->co_filename))
      number = numberOfLine(code->co_filename, PyFrame_GetLineNumber(frame));
    else if (!innermost.first)
      innermost = {code->co_filename, PyFrame_GetLineNumber(frame)};
    Py_DECREF(code);
    PyFrameObject* caller = PyFrame_GetBack(frame);
    Py_DECREF(frame);
    frame = caller;
  }
  Py_XDECREF(frame);
  if (!number && innermost.first)
    return numberOfLine(innermost.first, innermost.second);
  return number;
}

void describe(int64_t place, char* text, size_t bytes) {
  std::snprintf(text, bytes, "%s", lineOf(place).c_str());
}

// [-]
}  // namespace

// [profiler.races.places.set] The files to skip may change; those that were met before are looked up again.
void startPlaces(std::vector<std::string> skipped) {
  {
    std::lock_guard lock(lines().mutex);
    lines().skipped = std::move(skipped);
    lines().is_skipped.clear();
  }
  check(orSetPlaces(&here, &describe));
}

// A driver that finds no races has no places either, which is no error here.
void stopPlaces() { orSetPlaces(nullptr, nullptr); }

std::string lineOf(int64_t place) {
  std::lock_guard lock(lines().mutex);
  const auto& names = lines().names;
  return place > 0 && place < static_cast<int64_t>(names.size()) ? names[place]
                                                                 : "";
}

// [-]
}  // namespace openreg
