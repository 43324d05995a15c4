// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/operators/launch/launcher.h"

#include <ATen/MemoryOverlap.h>
#include <ATen/ops/_amp_foreach_non_finite_check_and_unscale.h>
#include <torch/library.h>

#include <vector>

namespace openreg {
namespace {

// [amp.scaler.refuse] The host refuses arguments that the kernel would misread.
constexpr const char* kUnscale = "_amp_foreach_non_finite_check_and_unscale_";

void checkNumber(const char* what, const at::Tensor& tensor,
                 c10::Device device) {
  TORCH_CHECK_VALUE(tensor.numel() == 1 && tensor.scalar_type() == at::kFloat &&
                        tensor.device() == device,
                    kUnscale, " needs ", what, " as one Float on ", device,
                    ", not ", tensor.numel(), " of ", tensor.scalar_type(),
                    " on ", tensor.device(),
                    "; torch.amp.GradScaler makes it so.");
}

void checkGradients(at::TensorList gradients, c10::Device first) {
  for (const at::Tensor& gradient : gradients) {
    TORCH_CHECK(gradient.device() == first, kUnscale,
                ": Expected all tensors to be on the same device, but found at "
                "least two devices, ",
                first, " and ", gradient.device(),
                "; call it once for each device.");
    const at::ScalarType dtype = gradient.scalar_type();
    TORCH_CHECK_TYPE(dtype == at::kDouble || dtype == at::kFloat ||
                         dtype == at::kHalf || dtype == at::kBFloat16,
                     kUnscale,
                     " needs gradients of float64, float32, float16 or "
                     "bfloat16, but found one of ",
                     dtype, ".");
    at::assert_no_internal_overlap(gradient);
  }
}

// [amp.scaler.unscale] One launch handles the whole list, and the host does not wait for it.
void unscale(at::TensorList gradients, at::Tensor& found_inf,
             const at::Tensor& inv_scale) {
  if (gradients.empty()) return;
  const c10::Device device = gradients[0].device();
  checkGradients(gradients, device);
  checkNumber("found_inf", found_inf, device);
  checkNumber("inv_scale", inv_scale, device);
  WithoutGil others_run;  // A full queue makes the host wait.
  beginAccesses();
  std::vector<View> views(gradients.begin(), gradients.end());
  check(launch(currentNativeStream(device.index()), kUnscale,
               [views = std::move(views), found_inf = View(found_inf),
                inv_scale = View(inv_scale, Access::read), modes = Modes()] {
                 runKernel(modes, [&] {
                   std::vector<at::Tensor> tensors;
                   for (const View& view : views)
                     tensors.push_back(view.tensor());
                   at::Tensor found = found_inf.tensor();
                   at::_amp_foreach_non_finite_check_and_unscale_(
                       tensors, found, inv_scale.tensor());
                 });
               }));
}

// [amp.scaler.register] `torch.amp.GradScaler` calls this operator for each list of gradients.
TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) { m.impl(kUnscale, &unscale); }

// [-]
}  // namespace
}  // namespace openreg
