// SPDX-License-Identifier: BSD-3-Clause

// [opencl.gemm.product] The host describes every stride of the product's operands.
/// out[i, j] = alpha * sum over k of a[i, k] * b[k, j] + beta * c[i, j], for
/// each batch. Strides are in elements: of the batch, the row and the column.
typedef struct {
  long rows, columns, depth;
  long out[3], a[3], b[3], c[3];
  /// Where the part begins that the kernel computes.
  long first_row, first_column;
} Product;

typedef __global C* Elements;
#define BASE(x, s) ((Elements)(x + x##_at) + get_global_id(1) * (s)[0])

// [opencl.gemm.plain] The plain kernel computes one element in each work item; it serves the edges and small products.
__kernel void gemm_plain(__global char* out, ulong out_at, __global char* a,
                         ulong a_at, __global char* b, ulong b_at,
                         __global char* c, ulong c_at, Product p, C alpha,
                         C beta) {
  const long width = p.columns - p.first_column;
  const long i = p.first_row + get_global_id(0) / width;
  const long j = p.first_column + get_global_id(0) % width;
  if (i >= p.rows) return;
  const Elements x = BASE(a, p.a) + i * p.a[1];
  const Elements y = BASE(b, p.b) + j * p.b[2];
  C sum = 0;
  for (long k = 0; k < p.depth; ++k)
    sum = fma(x[k * p.a[2]], y[k * p.b[1]], sum);
  sum *= alpha;
  if (beta != 0) sum += beta * BASE(c, p.c)[i * p.c[1] + j * p.c[2]];
  BASE(out, p.out)[i * p.out[1] + j * p.out[2]] = sum;
}

// [opencl.gemm.blocked] The fast kernel keeps 8 rows of 32 columns in registers; tiles in local memory are for GPUs.
/// `rows` is a multiple of 8 and `columns` of 32; the columns of b are dense.
__kernel void gemm_blocked(__global char* out, ulong out_at, __global char* a,
                           ulong a_at, __global char* b, ulong b_at,
                           __global char* c, ulong c_at, Product p, C alpha,
                           C beta) {
  const long j = get_global_id(0) % (p.columns / 32) * 32;
  const long i = get_global_id(0) / (p.columns / 32) * 8;
  if (i >= p.rows) return;
  const Elements x = BASE(a, p.a) + i * p.a[1];
  const Elements y = BASE(b, p.b) + j;
  C16 sum[8][2];
#pragma unroll
  for (int r = 0; r < 8; ++r) sum[r][0] = sum[r][1] = 0;
  for (long k = 0; k < p.depth; ++k) {
    const C16 left = vload16(0, y + k * p.b[1]);
    const C16 right = vload16(1, y + k * p.b[1]);
#pragma unroll
    for (int r = 0; r < 8; ++r) {
      const C16 v = x[r * p.a[1] + k * p.a[2]];
      sum[r][0] = fma(v, left, sum[r][0]);
      sum[r][1] = fma(v, right, sum[r][1]);
    }
  }
  for (int r = 0; r < 8; ++r) {
    C line[32];
    vstore16(sum[r][0], 0, line);
    vstore16(sum[r][1], 1, line);
    for (int q = 0; q < 32; ++q) {
      C value = alpha * line[q];
      if (beta != 0)
        value += beta * BASE(c, p.c)[(i + r) * p.c[1] + (j + q) * p.c[2]];
      BASE(out, p.out)[(i + r) * p.out[1] + (j + q) * p.out[2]] = value;
    }
  }
}

// [-]
