// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/device/runtime.h"
#include "torch_openreg/chapters/operators/launch/launcher.h"
#include "torch_openreg/chapters/operators/quantized/quantized.h"
#include "torch_openreg/chapters/operators/sparse/sparse.h"

#include <ATen/NativeFunctions.h>
#include <ATen/native/quantized/AffineQuantizer.h>
#include <ATen/ops/_make_per_channel_quantized_tensor.h>
#include <ATen/ops/_make_per_tensor_quantized_tensor.h>
#include <ATen/ops/dequantize.h>
#include <ATen/ops/int_repr.h>
#include <ATen/ops/quantize_per_channel.h>
#include <ATen/ops/quantize_per_tensor.h>
#include <torch/library.h>

namespace openreg {

// [operators.quantized.stubs] PyTorch checks and allocates; the stubs compute, over dense tensors of integers.
void quantizePerTensor(const at::Tensor& real, at::Tensor& quantized,
                       double scale, int64_t zero_point) {
  launchKernel(
      "quantize_per_tensor",
      [scale, zero_point, type = quantized.scalar_type()](
          at::Tensor integers, const at::Tensor& real) {
        integers.copy_(at::int_repr(
            at::quantize_per_tensor(real, scale, zero_point, type)));
      },
      integersOf(quantized), real);
}

void dequantizePerTensor(const at::Tensor& quantized, at::Tensor& real,
                         double scale, int64_t zero_point) {
  launchKernel(
      "dequantize",
      [scale, zero_point](at::Tensor real, const at::Tensor& integers) {
        real.copy_(at::dequantize(at::_make_per_tensor_quantized_tensor(
            integers, scale, zero_point)));
      },
      real, integersOf(quantized));
}

// [operators.quantized.stubs.channel] The scales of the channels are tensors, which the host does not read. Programs may pass them on the host, and the launch needs them on the device.
/// With qint32 and zero points that are not integers, PyTorch's own kernel ends
/// the process.
void checkZeroPoints(const at::Tensor& quantized,
                     const at::Tensor& zero_points) {
  TORCH_CHECK_NOT_IMPLEMENTED(quantized.scalar_type() != at::kQInt32 ||
                                  !zero_points.is_floating_point(),
                              "openreg takes zero points that are not integers "
                              "for qint8 and quint8 only.");
}

void quantizePerChannel(const at::Tensor& real, at::Tensor& quantized,
                        const at::Tensor& scales, const at::Tensor& zero_points,
                        int64_t axis) {
  checkZeroPoints(quantized, zero_points);
  launchKernel(
      "quantize_per_channel",
      [axis, type = quantized.scalar_type()](
          at::Tensor integers, const at::Tensor& real, const at::Tensor& scales,
          const at::Tensor& zero_points) {
        integers.copy_(at::int_repr(
            at::quantize_per_channel(real, scales, zero_points, axis, type)));
      },
      integersOf(quantized), real, scales.to(real.device()),
      zero_points.to(real.device()));
}

// [operators.quantized.stubs.channel.real] The way back needs the same scales.
void dequantizePerChannel(const at::Tensor& quantized, at::Tensor& real,
                          const at::Tensor& scales,
                          const at::Tensor& zero_points, int64_t axis) {
  checkZeroPoints(quantized, zero_points);
  launchKernel(
      "dequantize",
      [axis](at::Tensor real, const at::Tensor& integers,
             const at::Tensor& scales, const at::Tensor& zero_points) {
        real.copy_(at::dequantize(at::_make_per_channel_quantized_tensor(
            integers, scales, zero_points, axis)));
      },
      real, integersOf(quantized), scales.to(real.device()),
      zero_points.to(real.device()));
}

// [operators.quantized.stubs.parts] Dtypes with two or four numbers in a byte have a stub of their own, which only throws an error.
void refusePartsOfBytes(const at::Tensor&, at::Tensor& quantized, float,
                        float) {
  integersOf(quantized);
}

// [operators.quantized.register.kernels] Operators that compute are registered beside their kernels, so a backend without them falls back or refuses.
TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  registerTheirs<c10::DispatchKey::CPU, &makeByTheirs<c10::DispatchKey::CPU>>(
      m,
      "quantize_per_tensor quantize_per_tensor.tensor_qparams "
      "quantize_per_tensor.tensors quantize_per_channel");
  registerTheirs<c10::DispatchKey::CPU>(m, "dequantize.self");
}

TORCH_LIBRARY_IMPL(aten, QuantizedPrivateUse1, m) {
  registerTheirs<c10::DispatchKey::QuantizedCPU>(
      m, "dequantize.self dequantize.tensors");
}

// [-]
}  // namespace openreg

namespace at::native {

// [operators.quantized.stubs.register] The kernels also serve zero points that are not integers.
REGISTER_PRIVATEUSE1_DISPATCH(quantize_tensor_per_tensor_affine_stub,
                              &openreg::quantizePerTensor)
REGISTER_PRIVATEUSE1_DISPATCH(dequantize_tensor_per_tensor_affine_stub,
                              &openreg::dequantizePerTensor)
REGISTER_PRIVATEUSE1_DISPATCH(quantize_tensor_per_channel_affine_stub,
                              &openreg::quantizePerChannel)
REGISTER_PRIVATEUSE1_DISPATCH(dequantize_tensor_per_channel_affine_stub,
                              &openreg::dequantizePerChannel)
REGISTER_PRIVATEUSE1_DISPATCH(quantize_tensor_per_channel_float_qparams_stub,
                              &openreg::quantizePerChannel)
REGISTER_PRIVATEUSE1_DISPATCH(dequantize_tensor_per_channel_float_qparams_stub,
                              &openreg::dequantizePerChannel)
REGISTER_PRIVATEUSE1_DISPATCH(quantize_tensor_per_tensor_affine_sub_byte_stub,
                              &openreg::refusePartsOfBytes)

// [-]
}  // namespace at::native
