// SPDX-License-Identifier: BSD-3-Clause
// Stands before every source. The host defines C, the type to compute in, and
// which of the following macros load and store a kernel's operands.

// [opencl.types.double] In OpenCL 1.2, support for doubles is optional.
#ifdef cl_khr_fp64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif

// [opencl.types] A number is loaded from its dtype, computed in float, double or long, and stored to its dtype.
#define load_uchar(p) (*(const __global uchar*)(p))
#define load_char(p) (*(const __global char*)(p))
#define load_short(p) (*(const __global short*)(p))
#define load_int(p) (*(const __global int*)(p))
#define load_long(p) (*(const __global long*)(p))
#define load_float(p) (*(const __global float*)(p))
#define load_double(p) (*(const __global double*)(p))
#define load_bool(p) (*(const __global uchar*)(p) != 0)
#define load_half(p) vload_half(0, (const __global half*)(p))
#define load_bfloat(p) as_float((uint) * (const __global ushort*)(p) << 16)

#define store_uchar(p, v) (*(__global uchar*)(p) = (uchar)(long)(v))
#define store_char(p, v) (*(__global char*)(p) = (char)(long)(v))
#define store_short(p, v) (*(__global short*)(p) = (short)(long)(v))
#define store_int(p, v) (*(__global int*)(p) = (int)(long)(v))
#define store_long(p, v) (*(__global long*)(p) = (long)(v))
#define store_float(p, v) (*(__global float*)(p) = (float)(v))
#define store_double(p, v) (*(__global double*)(p) = (double)(v))
#define store_bool(p, v) (*(__global uchar*)(p) = (v) != 0)
#define store_half(p, v) vstore_half((float)(v), 0, (__global half*)(p))
#define store_bfloat(p, v) (*(__global ushort*)(p) = to_bfloat((float)(v)))

// [opencl.types.bfloat] A bfloat16 is the upper half of a float, rounded to nearest, ties to even.
ushort to_bfloat(float value) {
  const uint bits = as_uint(value);
  if (value != value) return 0x7fc0;
  return (ushort)((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

// [opencl.types.shape] A kernel gets the sizes that are left after broadcasting and merging, and each operand's strides in bytes.
typedef struct {
  long dims;
  long sizes[8];
  long strides[4][8];
} Shape;

// [-]
