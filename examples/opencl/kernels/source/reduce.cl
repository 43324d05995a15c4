// SPDX-License-Identifier: BSD-3-Clause

// [opencl.reduce.kernel] Each work item reduces one run of elements to one number.
/// The runs are those of a tensor [outer, n, inner], along n. Work item (o, i)
/// combines with COMBINE, from FIRST, and stores FINISH of the result, which
/// may use n. `n` elements are combined in blocks, so that the error of a long
/// sum grows with the number of blocks and not with that of elements.
__kernel void reduce(__global char* out, ulong out_at,
                     __global const char* in, ulong in_at, long outer, long n,
                     long inner, double scale) {
  const long id = get_global_id(0);
  if (id >= outer * inner) return;
  const long first = id / inner * n * inner + id % inner;
  in += in_at + first * SIZE_IN;
  C total = FIRST;
  for (long begin = 0; begin < n; begin += 256) {
    const long end = min(begin + 256, n);
    C x = FIRST;
    for (long k = begin; k < end; ++k) {
      const C y = LOAD(in + k * inner * SIZE_IN);
      x = COMBINE;
    }
    const C y = x;
    x = total;
    total = COMBINE;
  }
  STORE(out + out_at + id * SIZE_OUT, FINISH(total));
}

// [opencl.reduce.index] The kernel finds the index of the largest element; NaN counts as larger than all numbers.
__kernel void index_of_largest(__global char* out, ulong out_at,
                               __global const char* in, ulong in_at, long outer,
                               long n, long inner) {
  const long id = get_global_id(0);
  if (id >= outer * inner) return;
  in += in_at + (id / inner * n * inner + id % inner) * SIZE_IN;
  C most = LOAD(in);
  long found = 0;
  for (long k = 1; k < n; ++k) {
    const C y = LOAD(in + k * inner * SIZE_IN);
    if (most == most && !(y <= most)) {
      most = y;
      found = k;
    }
  }
  ((__global long*)(out + out_at))[id] = found;
}

// [-]
