// SPDX-License-Identifier: BSD-3-Clause

// [opencl.images.window] A convolution and a pooling move a window over an image.
typedef struct {
  long channels, height, width;
  long rows, columns;  // of windows
  long size[2], stride[2], padding[2], dilation[2];
} Windows;

// [opencl.images.unfold] A convolution becomes a matrix product when each window is a column of a matrix.
/// `out` is [n, channels * kernel, windows], `in` is [n, channels, height,
/// width]. A place outside of the image is zero.
__kernel void unfold(__global char* out, ulong out_at, __global const char* in,
                     ulong in_at, long count, Windows w) {
  const long id = get_global_id(0);
  if (id >= count) return;
  const long x = id % w.columns, y = id / w.columns % w.rows;
  const long tap = id / (w.columns * w.rows);
  const long dx = tap % w.size[1], dy = tap / w.size[1] % w.size[0];
  const long plane = tap / (w.size[0] * w.size[1]);
  const long column = x * w.stride[1] - w.padding[1] + dx * w.dilation[1];
  const long row = y * w.stride[0] - w.padding[0] + dy * w.dilation[0];
  const int inside =
      row >= 0 && row < w.height && column >= 0 && column < w.width;
  in += in_at + ((plane * w.height + row) * w.width + column) * SIZE;
  STORE(out + out_at + id * SIZE, inside ? LOAD(in) : 0);
}

// [opencl.images.fold] In the backward pass, the work item of each pixel adds up all windows that contain it.
__kernel void fold(__global char* out, ulong out_at, __global const char* in,
                   ulong in_at, long count, Windows w) {
  const long id = get_global_id(0);
  if (id >= count) return;
  const long column = id % w.width, row = id / w.width % w.height;
  const long plane = id / (w.width * w.height);
  C sum = 0;
  for (long dy = 0; dy < w.size[0]; ++dy) {
    for (long dx = 0; dx < w.size[1]; ++dx) {
      const long y = row + w.padding[0] - dy * w.dilation[0];
      const long x = column + w.padding[1] - dx * w.dilation[1];
      if (y < 0 || x < 0 || y % w.stride[0] || x % w.stride[1]) continue;
      if (y / w.stride[0] >= w.rows || x / w.stride[1] >= w.columns) continue;
      const long tap = (plane * w.size[0] + dy) * w.size[1] + dx;
      const long from =
          (tap * w.rows + y / w.stride[0]) * w.columns + x / w.stride[1];
      sum += LOAD(in + in_at + from * SIZE);
    }
  }
  STORE(out + out_at + id * SIZE, sum);
}

// [opencl.images.pool] Pooling keeps the position of each maximum for the backward pass.
__kernel void max_pool(__global char* out, ulong out_at, __global char* places,
                       ulong places_at, __global const char* in, ulong in_at,
                       long count, Windows w) {
  const long id = get_global_id(0);
  if (id >= count) return;
  const long x = id % w.columns, y = id / w.columns % w.rows;
  const long plane = id / (w.columns * w.rows);
  in += in_at + plane * w.height * w.width * SIZE;
  C most = -INFINITY;
  long place = -1;
  for (long dy = 0; dy < w.size[0]; ++dy) {
    for (long dx = 0; dx < w.size[1]; ++dx) {
      const long row = y * w.stride[0] - w.padding[0] + dy * w.dilation[0];
      const long column = x * w.stride[1] - w.padding[1] + dx * w.dilation[1];
      if (row < 0 || row >= w.height || column < 0 || column >= w.width)
        continue;
      const C value = LOAD(in + (row * w.width + column) * SIZE);
      if (place < 0 || (most == most && !(value <= most))) {
        most = value;
        place = row * w.width + column;
      }
    }
  }
  STORE(out + out_at + id * SIZE, most);
  ((__global long*)(places + places_at))[id] = place;
}

// [opencl.images.pool-backward] Windows may overlap, so one work item handles a whole plane and needs no atomic additions.
__kernel void max_pool_backward(__global char* out, ulong out_at,
                                __global const char* gradient,
                                ulong gradient_at, __global const char* places,
                                ulong places_at, long planes, long windows,
                                long pixels) {
  const long plane = get_global_id(0);
  if (plane >= planes) return;
  out += out_at + plane * pixels * SIZE;
  for (long k = 0; k < pixels; ++k) STORE(out + k * SIZE, 0);
  for (long k = plane * windows; k < (plane + 1) * windows; ++k) {
    const long place = ((__global const long*)(places + places_at))[k];
    __global char* sum = out + place * SIZE;
    const C more = LOAD(gradient + gradient_at + k * SIZE);
    STORE(sum, LOAD(sum) + more);
  }
}

// [-]
