// SPDX-License-Identifier: BSD-3-Clause
// Compiled by the device's compiler, which knows nothing of PyTorch.
#include "holds.h"

// [compiled.kernels.take] An element whose index is out of range is left as it is, and the record says why.
void take(const struct TakeArguments* arguments) {
  for (int64_t i = 0; i < arguments->count; ++i) {
    const int64_t size = arguments->source_size;
    int64_t from = arguments->index[i];
    if (!holds(from >= -size && from < size, arguments->record, kIndexInRange,
               from, size))
      continue;
    if (from < 0) from += size;
    arguments->out[i] = arguments->source[from];
  }
}

// [compiled.kernels.tiles] Tiles follow each other by rows, and so do the elements within a tile.
static int64_t offsetInTiles(int64_t row, int64_t column, int64_t columns) {
  const int64_t tiles_per_row = (columns + kTile - 1) / kTile;
  const int64_t tile = row / kTile * tiles_per_row + column / kTile;
  return tile * kTile * kTile + row % kTile * kTile + column % kTile;
}

void pack(const struct TileArguments* arguments) {
  for (int64_t row = 0; row < arguments->rows; ++row)
    for (int64_t column = 0; column < arguments->columns; ++column)
      arguments->tiles[offsetInTiles(row, column, arguments->columns)] =
          arguments->plain[row * arguments->columns + column];
}

void unpack(const struct TileArguments* arguments) {
  for (int64_t row = 0; row < arguments->rows; ++row)
    for (int64_t column = 0; column < arguments->columns; ++column)
      arguments->plain[row * arguments->columns + column] =
          arguments->tiles[offsetInTiles(row, column, arguments->columns)];
}

// [compiled.kernels.product] A kernel that knows the layout reads the tiles where they are.
void tiledProduct(const struct TiledProductArguments* arguments) {
  for (int64_t row = 0; row < arguments->rows; ++row) {
    float sum = 0;
    for (int64_t column = 0; column < arguments->columns; ++column)
      sum += arguments->tiles[offsetInTiles(row, column, arguments->columns)] *
             arguments->vector[column];
    arguments->out[row] = sum;
  }
}

// [-]
