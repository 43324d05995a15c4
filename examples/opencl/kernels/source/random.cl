// SPDX-License-Identifier: BSD-3-Clause

// [opencl.random.philox] The generator is Philox, as in the chapters, with an engine for each element.
ulong random_bits(ulong seed, ulong offset, ulong i) {
  uint4 counter = (uint4)((uint)offset, (uint)(offset >> 32), (uint)i,
                          (uint)(i >> 32));
  uint2 key = (uint2)((uint)seed, (uint)(seed >> 32));
  for (int round = 0; round < 10; ++round) {
    const uint high0 = mul_hi(0xD2511F53u, counter.x);
    const uint low0 = 0xD2511F53u * counter.x;
    const uint high1 = mul_hi(0xCD9E8D57u, counter.z);
    const uint low1 = 0xCD9E8D57u * counter.z;
    counter = (uint4)(high1 ^ counter.y ^ key.x, low1,
                      high0 ^ counter.w ^ key.y, low0);
    key += (uint2)(0x9E3779B9u, 0xBB67AE85u);
  }
  return (ulong)counter.x << 32 | counter.y;
}

// [opencl.random.sample] A sampler is an expression of 64 random bits and two numbers.
/// C is double, as on the CPU.
#define UNIT(bits, digits) ldexp((C)((bits) >> (64 - (digits))), -(digits))

C normal(ulong bits, C mean, C deviation) {
  const C radius = sqrt(-2 * log1p(-UNIT(bits, 24)));
  const C angle = 2 * (C)3.14159265358979323846 * UNIT(bits << 32, 24);
  return mean + deviation * radius * cos(angle);
}

__kernel void sample(__global char* out, ulong out_at, long count, ulong seed,
                     ulong offset, C x, C y, ulong first, ulong range) {
  const long i = get_global_id(0);
  if (i >= count) return;
  const ulong bits = random_bits(seed, offset, i);
  out += out_at + i * SIZE_OUT;
#ifdef BOUND
  // Rounding may give the bound itself, which is excluded.
  STORE(out, y);
  const C bound = LOAD(out);
  STORE(out, (SAMPLE));
  if (LOAD(out) == bound) STORE(out, x);
#else
  STORE(out, (SAMPLE));
#endif
}

// [-]
