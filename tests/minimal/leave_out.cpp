// SPDX-License-Identifier: BSD-3-Clause
// Loaded before all others, stands between a backend and PyTorch's dispatcher:
// leaves out the one registration that OPENREG_LEAVE_OUT names.
#include <torch/library.h>

#include <dlfcn.h>

#include <cstdlib>
#include <string>

namespace {

using Key = std::optional<c10::DispatchKey>;

// The dispatch key of a block of registrations is private, and the name of a
// private member may be written in an explicit instantiation.
Key keyOf(const torch::Library& block);
template <auto member>
struct Open {
  friend Key keyOf(const torch::Library& block) { return block.*member; }
};
template struct Open<&torch::Library::dispatch_key_>;

bool leftOut(const torch::Library& block, std::string name) {
  const char* left_out = std::getenv("OPENREG_LEAVE_OUT");
  const Key key = keyOf(block);
  // Whoever registers many names gives them in full.
  if (name.starts_with("aten::")) name.erase(0, 6);
  return left_out && key &&
         left_out == std::string(c10::toString(*key)) + "." + name;
}

}  // namespace

// What every `m.impl(...)` calls.
torch::Library& torch::Library::_impl(const char* name, CppFunction&& function,
                                      _RegisterOrVerify verify) & {
  if (leftOut(*this, name)) return *this;
  using Real =
      Library& (*)(Library*, const char*, CppFunction&&, _RegisterOrVerify);
  static const auto real = reinterpret_cast<Real>(dlsym(
      RTLD_NEXT,
      "_ZNR5torch7Library5_implEPKcONS_11CppFunctionENS_17_RegisterOrVerifyE"));
  return real(this, name, std::move(function), verify);
}
