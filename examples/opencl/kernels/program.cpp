// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/examples/opencl/kernels/program.h"

#include "torch_openreg/chapters/device/streams/stream.h"
#include "torch_openreg/common/tensors.h"
#include "torch_openreg/common/check.h"
#include "torch_openreg/common/waiting.h"
#include "sources.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <unordered_map>

namespace openreg {

// [opencl.program.dtypes] Halves are computed as floats, and integers as long, as on the CPU.
const Dtype* dtypeOf(at::ScalarType dtype) {
  static const std::map<at::ScalarType, Dtype> dtypes = {
      {at::kByte, {"uchar", 1, "long"}},
      {at::kChar, {"char", 1, "long"}},
      {at::kShort, {"short", 2, "long"}},
      {at::kInt, {"int", 4, "long"}},
      {at::kLong, {"long", 8, "long"}},
      {at::kBool, {"bool", 1, "long"}},
      {at::kHalf, {"half", 2, "float"}},
      {at::kBFloat16, {"bfloat", 2, "float"}},
      {at::kFloat, {"float", 4, "float"}},
      {at::kDouble, {"double", 8, "double"}},
  };
  const auto found = dtypes.find(dtype);
  return found == dtypes.end() ? nullptr : &found->second;
}

bool knowsAll(at::ArrayRef<at::Tensor> tensors) {
  return std::all_of(
      tensors.begin(), tensors.end(), [](const at::Tensor& tensor) {
        return !tensor.defined() ||
               (dtypeOf(tensor.scalar_type()) && !tensor.is_neg());
      });
}

// [opencl.program.define] The macros stand before the source, so they need no quoting.
Program& Program::define(const std::string& name, const std::string& value) {
  defines_ += "#define " + name + " " + value + "\n";
  return *this;
}

Program& Program::operand(const std::string& suffix, at::ScalarType dtype) {
  const Dtype& known = *dtypeOf(dtype);
  const std::string end = suffix.empty() ? "" : "_" + suffix;
  define("SIZE" + end, std::to_string(known.size));
  define("LOAD" + end, std::string("load_") + known.name);
  return define("STORE" + end, std::string("store_") + known.name);
}

Program& Program::compute(const std::string& type) {
  return define("C", type).define("C16", type + "16");
}

// [opencl.program.compile] The key leaves out the source's text, which would cost more to compare than to launch.
orFunction_t Program::function() const {
  static std::mutex mutex;
  static std::unordered_map<std::string, orFunction_t> functions;
  const std::string key = std::string(name_) + '\n' + defines_;
  std::lock_guard lock(mutex);
  orFunction_t& function = functions[key];
  if (!function) {
    const std::string text = defines_ + source::types + source_;
    check(orFunctionGet(&function, text.c_str(), "", name_));
  }
  return function;
}

// [opencl.program.arguments] The numbers are copied into one buffer, which may move while it grows.
Launch& Launch::address(const at::Tensor& tensor) {
  checkMemory(tensor);
  return address(tensor.const_data_ptr());
}

Launch& Launch::address(const void* pointer) {
  arguments_.push_back({pointer, 0});
  return *this;
}

Launch& Launch::bytes(const void* value, size_t size) {
  arguments_.push_back({reinterpret_cast<const void*>(values_.size()), size});
  const char* first = static_cast<const char*>(value);
  values_.append(first, first + size);
  return *this;
}

Launch& Launch::number(const std::string& compute, double value,
                       int64_t integer) {
  if (compute == "long") return number(integer);
  if (compute == "double") return number(value);
  return number(static_cast<float>(value));
}

// [opencl.program.run] The grid is rounded up to whole groups, and kernels check their index.
void Launch::run(c10::DeviceIndex index, int64_t count, int64_t batches,
                 size_t group) {
  if (count == 0 || batches == 0) return;
  for (orArgument& argument : arguments_) {
    if (!argument.size) continue;
    argument.value =
        values_.data() + reinterpret_cast<uintptr_t>(argument.value);
  }
  const size_t items = static_cast<size_t>(count);
  const size_t global[2] = {(items + group - 1) / group * group,
                            static_cast<size_t>(batches)};
  const size_t local[2] = {group, 1};
  WithoutGil others_run;  // A full queue makes the host wait.
  check(orFunctionLaunch(function_, currentNativeStream(index), 2, global,
                         local, arguments_.data(), arguments_.size()));
}

// [-]
}  // namespace openreg
