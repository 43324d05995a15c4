// SPDX-License-Identifier: BSD-3-Clause

// [opencl.elementwise.parameters] An operand is an address, or a number among the arguments.
#define ADDRESS(x) __global const char *x##_base, ulong x##_at
#ifdef LOAD_A
#define A ADDRESS(a)
#else
#define A C a
#endif
#ifdef LOAD_B
#define B ADDRESS(b)
#else
#define B C b
#endif
#ifdef LOAD_C
#define THIRD ADDRESS(c)
#else
#define THIRD C c
#endif
#ifdef DENSE
#define SHAPE
#else
#define SHAPE , Shape shape
#endif

// [opencl.elementwise.kernel] One kernel is compiled for each formula and the dtypes of its operands.
/// The host defines FORMULA, an expression of a, b, c (the operands), s, t (the
/// numbers) and i (the index), and STORE. For each operand in memory it defines
/// a macro such as LOAD_A, and its size, SIZE_A. DENSE says that the elements
/// of all operands are in memory in the order of the index.
__kernel void elementwise(__global char* out, ulong out_at, A, B, THIRD, C s,
                          C t, long count SHAPE) {
  const long i = get_global_id(0);
  if (i >= count) return;
  long at[4] = {i * SIZE_OUT, i * SIZE_A, i * SIZE_B, i * SIZE_C};
#ifndef DENSE
  at[0] = at[1] = at[2] = at[3] = 0;
  long rest = i;
  for (int d = 0; d < shape.dims; ++d) {
    const long index = rest % shape.sizes[d];
    rest /= shape.sizes[d];
    for (int k = 0; k < 4; ++k) at[k] += index * shape.strides[k][d];
  }
#endif
#ifdef LOAD_A
  const C a = LOAD_A(a_base + a_at + at[1]);
#endif
#ifdef LOAD_B
  const C b = LOAD_B(b_base + b_at + at[2]);
#endif
#ifdef LOAD_C
  const C c = LOAD_C(c_base + c_at + at[3]);
#endif
  STORE(out + out_at + at[0], (FORMULA));
}

// [-]
