// SPDX-License-Identifier: BSD-3-Clause

// [opencl.rows.element] Element k of a row is found from the row's first element and the distance between two elements.
#define IN(base, k) LOAD_IN(base + (first + (k) * inner) * SIZE_IN)
#define OUT(base, k) (base + (first + (k) * inner) * SIZE_OUT)

// [opencl.rows.softmax] Softmax subtracts the largest element first, because exp of a large number would be infinite.
/// Each work item has one row of a tensor [outer, n, inner], along n. With LOG
/// the result is the logarithm.
__kernel void softmax(__global char* out, ulong out_at,
                      __global const char* in, ulong in_at, long outer, long n,
                      long inner) {
  const long id = get_global_id(0);
  if (id >= outer * inner) return;
  const long first = id / inner * n * inner + id % inner;
  out += out_at;
  in += in_at;
  C most = -INFINITY;
  for (long k = 0; k < n; ++k) most = fmax(most, (C)IN(in, k));
  C sum = 0;
  for (long k = 0; k < n; ++k) sum += exp((C)IN(in, k) - most);
#ifdef LOG
  const C offset = most + log(sum);
  for (long k = 0; k < n; ++k) STORE(OUT(out, k), (C)IN(in, k) - offset);
#else
  for (long k = 0; k < n; ++k)
    STORE(OUT(out, k), exp((C)IN(in, k) - most) / sum);
#endif
}

// [opencl.rows.softmax-backward] The gradient needs the output, but not the input.
__kernel void softmax_backward(__global char* out, ulong out_at,
                               __global const char* gradient, ulong gradient_at,
                               __global const char* result, ulong result_at,
                               long outer, long n, long inner) {
  const long id = get_global_id(0);
  if (id >= outer * inner) return;
  const long first = id / inner * n * inner + id % inner;
  out += out_at;
  gradient += gradient_at;
  result += result_at;
  C sum = 0;
#ifdef LOG
  for (long k = 0; k < n; ++k) sum += (C)IN(gradient, k);
  for (long k = 0; k < n; ++k)
    STORE(OUT(out, k), (C)IN(gradient, k) - exp((C)IN(result, k)) * sum);
#else
  for (long k = 0; k < n; ++k) sum += (C)IN(gradient, k) * (C)IN(result, k);
  for (long k = 0; k < n; ++k)
    STORE(OUT(out, k), ((C)IN(gradient, k) - sum) * (C)IN(result, k));
#endif
}

// [opencl.rows.layer-norm] Layer norm keeps the mean and the reciprocal standard deviation of each row for the backward pass.
__kernel void layer_norm(__global char* out, ulong out_at, __global char* means,
                         ulong means_at, __global char* scales, ulong scales_at,
                         __global const char* in, ulong in_at, long outer,
                         long n, double eps) {
  const long id = get_global_id(0), inner = 1, first = id * n;
  if (id >= outer) return;
  out += out_at;
  in += in_at;
  C sum = 0, squares = 0;
  for (long k = 0; k < n; ++k) sum += (C)IN(in, k);
  const C mean = sum / n;
  for (long k = 0; k < n; ++k) {
    const C difference = (C)IN(in, k) - mean;
    squares += difference * difference;
  }
  const C scale = 1 / sqrt(squares / n + (C)eps);
  for (long k = 0; k < n; ++k)
    STORE(OUT(out, k), ((C)IN(in, k) - mean) * scale);
  STORE(means + means_at + id * SIZE_OUT, mean);
  STORE(scales + scales_at + id * SIZE_OUT, scale);
}

// [opencl.rows.layer-norm-backward] Here `normal` is the normalized input, and `gradient` is already multiplied by the weight.
__kernel void layer_norm_backward(__global char* out, ulong out_at,
                                  __global const char* gradient,
                                  ulong gradient_at,
                                  __global const char* normal, ulong normal_at,
                                  __global const char* scales, ulong scales_at,
                                  long outer, long n) {
  const long id = get_global_id(0), inner = 1, first = id * n;
  if (id >= outer) return;
  out += out_at;
  gradient += gradient_at;
  normal += normal_at;
  C sum = 0, product = 0;
  for (long k = 0; k < n; ++k) {
    sum += (C)IN(gradient, k);
    product += (C)IN(gradient, k) * (C)IN(normal, k);
  }
  const C scale = LOAD_IN(scales + scales_at + id * SIZE_IN);
  for (long k = 0; k < n; ++k)
    STORE(OUT(out, k), scale * ((C)IN(gradient, k) -
                                (sum + (C)IN(normal, k) * product) / n));
}

// [opencl.rows.nll] A kernel cannot throw, so a class that does not exist makes the loss NaN.
/// `losses` gets the loss of each row, and `weights` 1, or 0 for a row whose
/// target is `ignored`.
__kernel void nll_loss(__global char* losses, ulong losses_at,
                       __global char* weights, ulong weights_at,
                       __global const char* in, ulong in_at,
                       __global const char* targets, ulong targets_at,
                       long rows, long classes, long ignored) {
  const long row = get_global_id(0);
  if (row >= rows) return;
  const long target = ((__global const long*)(targets + targets_at))[row];
  const int counts = target != ignored;
  C loss = 0;
  if (counts) {
    loss = target < 0 || target >= classes
               ? NAN
               : -(C)LOAD_IN(in + in_at + (row * classes + target) * SIZE_IN);
  }
  STORE(losses + losses_at + row * SIZE_OUT, loss);
  STORE(weights + weights_at + row * SIZE_OUT, counts);
}

__kernel void nll_loss_backward(__global char* out, ulong out_at,
                                __global const char* gradients,
                                ulong gradients_at,
                                __global const char* targets, ulong targets_at,
                                long rows, long classes, long ignored) {
  const long id = get_global_id(0), row = id / classes;
  if (row >= rows) return;
  const long target = ((__global const long*)(targets + targets_at))[row];
  const C gradient = LOAD_IN(gradients + gradients_at + row * SIZE_IN);
  const int hit = target != ignored && target == id % classes;
  STORE(out + out_at + id * SIZE_OUT, hit ? -gradient : 0);
}

// [-]
