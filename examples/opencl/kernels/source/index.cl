// SPDX-License-Identifier: BSD-3-Clause

// [opencl.index.select] Rows are copied as bytes; an index out of range gives a row of zeros.
/// `in` is [outer, from, inner], `out` is [outer, to, inner], in units of UNIT.
__kernel void index_select(__global char* out, ulong out_at,
                           __global const char* in, ulong in_at,
                           __global const char* indices, ulong indices_at,
                           long outer, long from, long to, long inner) {
  const long id = get_global_id(0);
  if (id >= outer * to * inner) return;
  const long column = id % inner, row = id / inner % to, block = id / inner / to;
  const long index = LOAD_INDEX(indices + indices_at + row * SIZE_INDEX);
  __global const UNIT* source = (__global const UNIT*)(in + in_at);
  __global UNIT* target = (__global UNIT*)(out + out_at);
  target[id] = index < 0 || index >= from
                   ? 0
                   : source[(block * from + index) * inner + column];
}

// [opencl.index.embedding] One work item adds up rows with the same index, because OpenCL has no atomic addition of floats.
/// `out` is [rows, inner] and zero; work item i adds column i of each row of
/// `gradient`, [count, inner], to the row that its index names.
__kernel void embedding_backward(__global char* out, ulong out_at,
                                 __global const char* gradient,
                                 ulong gradient_at,
                                 __global const char* indices, ulong indices_at,
                                 long count, long rows, long inner,
                                 long padding) {
  const long column = get_global_id(0);
  if (column >= inner) return;
  out += out_at;
  for (long k = 0; k < count; ++k) {
    const long row = LOAD_INDEX(indices + indices_at + k * SIZE_INDEX);
    if (row == padding || row < 0 || row >= rows) continue;
    __global char* sum = out + (row * inner + column) * SIZE_OUT;
    const C more =
        LOAD_IN(gradient + gradient_at + (k * inner + column) * SIZE_OUT);
    STORE(sum, LOAD_IN(sum) + more);
  }
}

// [-]
