// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/distributed/hosts/wide_numbers.h"

#include "torch_openreg/chapters/device/runtime.h"
#include "torch_openreg/chapters/device/streams/stream.h"

#include <ATen/ops/empty_like.h>
#include <ATen/ops/from_blob.h>
#include <c10/core/StreamGuard.h>

#include <map>

namespace openreg {

// [distributed.hosts.wide.types] bfloat16 has the range of float32, and 32 bits overflow on one host, too.
struct WideType {
  c10::ScalarType narrow, wide;
  NumberType type;
};

static const std::map<NumberType, WideType> kWideTypes = {
    {NumberType::float16, {c10::kHalf, c10::kFloat, NumberType::float32}},
    {NumberType::int8, {c10::kChar, c10::kInt, NumberType::int32}},
    {NumberType::int16, {c10::kShort, c10::kInt, NumberType::int32}},
    {NumberType::uint8, {c10::kByte, c10::kInt, NumberType::int32}},
    {NumberType::uint16, {c10::kUInt16, c10::kInt, NumberType::int32}},
};

// [distributed.hosts.wide.copies] PyTorch converts, on the stream of the call.
WideNumbers::WideNumbers(orStream_t stream, int device, const Signature& call,
                         void* output, std::span<const void* const> inputs,
                         size_t count)
    : call(call),
      output(output),
      inputs(inputs.begin(), inputs.end()),
      stream_(streamOfHandle(stream, static_cast<c10::DeviceIndex>(device))) {
  const auto found = kWideTypes.find(call.type);
  if (call.reduction != Reduction::average || found == kWideTypes.end() ||
      count == 0) {
    return;
  }
  const auto& [narrow, wide, type] = found->second;
  const auto options = at::dtype(narrow).device(stream_.device());
  const auto tensorAt = [&](const void* data) {
    return at::from_blob(const_cast<void*>(data), static_cast<int64_t>(count),
                         options);
  };
  const c10::StreamGuard on_stream(stream_);
  for (const void*& input : this->inputs) {
    wide_inputs_.push_back(tensorAt(input).to(wide));
    input = wide_inputs_.back().data_ptr();
  }
  this->call.type = type;
  if (!output) return;
  narrow_output_ = tensorAt(output);
  wide_output_ = at::empty_like(wide_inputs_.front());
  this->output = wide_output_.data_ptr();
}

void WideNumbers::writeBack() const {
  const c10::StreamGuard on_stream(stream_);
  if (wide_output_.defined()) narrow_output_.copy_(wide_output_);
}

// [-]
}  // namespace openreg
