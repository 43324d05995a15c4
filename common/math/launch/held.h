// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/common/math/launch/view.h"
#include "torch_openreg/common/tensors.h"

#include <ATen/core/List.h>

#include <optional>
#include <string>
#include <vector>

namespace openreg {

// [common.held] A launch owns its arguments, so references to the caller's memory become copies.
template <class T>
struct Held {
  T value;
  explicit Held(const T& argument) : value(argument) {}
  const T& get() const { return value; }
};

template <>
struct Held<at::Tensor> {
  View view;
  explicit Held(const at::Tensor& tensor) : view(tensor, Access::read) {}
  at::Tensor get() const { return view.tensor(); }
};

template <>
struct Held<at::OptionalIntArrayRef> {
  std::optional<at::DimVector> numbers;
  explicit Held(at::OptionalIntArrayRef argument) {
    if (argument) numbers.emplace(*argument);
  }
  at::OptionalIntArrayRef get() const {
    return numbers ? at::OptionalIntArrayRef(*numbers) : std::nullopt;
  }
};

template <>
struct Held<c10::string_view> {
  std::string text;
  explicit Held(c10::string_view argument) : text(argument) {}
  c10::string_view get() const { return text; }
};

// [common.held.optional] A tensor that may be missing is a view that may be undefined.
template <>
struct Held<std::optional<at::Tensor>> {
  View view;
  explicit Held(const std::optional<at::Tensor>& tensor)
      : view(tensor.value_or(at::Tensor()), Access::read) {}
  std::optional<at::Tensor> get() const {
    at::Tensor tensor = view.tensor();
    return tensor.defined() ? std::optional(std::move(tensor)) : std::nullopt;
  }
};

// [common.held.lists] A list of tensors becomes a list of views.
template <>
struct Held<at::ITensorListRef> {
  std::vector<View> views;
  explicit Held(const at::ITensorListRef& tensors) {
    views.reserve(tensors.size());
    for (const at::Tensor& tensor : tensors)
      views.emplace_back(tensor, Access::read);
  }
  std::vector<at::Tensor> get() const {
    std::vector<at::Tensor> tensors;
    tensors.reserve(views.size());
    for (const View& view : views) tensors.push_back(view.tensor());
    return tensors;
  }
};

template <>
struct Held<Indices> {
  std::vector<View> views;
  explicit Held(const Indices& indices) {
    views.reserve(indices.size());
    for (const std::optional<at::Tensor>& index : indices)
      views.emplace_back(index.value_or(at::Tensor()), Access::read);
  }
  Indices get() const {
    Indices indices;
    indices.reserve(views.size());
    for (const View& view : views) indices.push_back(view.tensor());
    return indices;
  }
};

// [-]
}  // namespace openreg
