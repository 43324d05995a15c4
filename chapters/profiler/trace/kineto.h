// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// [profiler.kineto] Kineto's headers show an interface only with these two macros.
/// PyTorch hides its registry of profilers without the first. The second makes
/// fmt a library of headers: the wheel's libraries have fmt inside, and do not
/// export it.
#define USE_KINETO
#define FMT_HEADER_ONLY  ///< see USE_KINETO

#include <torch/csrc/profiler/standalone/privateuse1_profiler.h>

#include <libkineto.h>
#include <output_base.h>

// [-]
