// SPDX-License-Identifier: BSD-3-Clause
// What the host and the device both read. Two compilers read this file, so it
// has types of a fixed width only, and no type of PyTorch.
#pragma once

#include <stdint.h>

// [compiled.arguments] Each kernel has one struct of arguments, whose layout both compilers must agree on.
struct AssertionRecord;

struct TakeArguments {
  float* out;
  const float* source;
  const int64_t* index;
  int64_t count;       /**< of `index` and `out` */
  int64_t source_size; /**< elements of `source` */
  struct AssertionRecord* record;
};

/// Of a matrix that is stored by rows, and the same in tiles.
struct TileArguments {
  float* plain;
  float* tiles;
  int64_t rows, columns;
};

/// `out[row]` is the product of a row of the matrix and `vector`.
struct TiledProductArguments {
  float* out;
  const float* tiles;
  const float* vector;
  int64_t rows, columns;
};

// [compiled.arguments.record] A kernel cannot print, so a failed assertion is a number and two values.
/// One for all kernels, in memory that kernels write and the host reads.
struct AssertionRecord {
  int32_t state;     /**< one of AssertionState */
  int32_t assertion; /**< one of Assertion */
  int64_t values[2];
};

enum AssertionState { kNothingFailed, kBeingWritten, kWritten };

enum Assertion { kIndexInRange };

// [compiled.arguments.tiles] A tile is a square of this many rows and columns; the last tiles are padded with zeros.
enum { kTile = 4 };

// [-]
