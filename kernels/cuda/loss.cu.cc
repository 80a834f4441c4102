#include "kernels/cuda/loss.h"

#include "kernels/cuda/launch.h"

namespace rubato::cuda {
namespace {

// A logit and where it is; of equal ones the first counts.
struct Largest {
  float value;
  int64_t at;
};

// NaN is never larger, as in a serial search that begins with a number.
__device__ inline Largest Larger(const Largest& a, const Largest& b) {
  if (b.at < 0) return a;
  if (a.at < 0) return b;
  const bool take_b = b.value > a.value || (b.value == a.value && b.at < a.at);
  return take_b ? b : a;
}

__device__ Largest LargestOfRow(const float* logits, int64_t columns, Largest* shared) {
  const int thread = static_cast<int>(threadIdx.x);
  Largest mine = {0, -1};
  for (int64_t i = thread; i < columns; i += kThreads) {
    // Left out; the sum of exponentials shows it.
    if (!isnan(logits[i])) mine = Larger(mine, {logits[i], i});
  }
  shared[thread] = mine;
  __syncthreads();
  for (int half = kThreads / 2; half > 0; half /= 2) {
    if (thread < half) shared[thread] = Larger(shared[thread], shared[thread + half]);
    __syncthreads();
  }
  const Largest largest = shared[0];
  __syncthreads();
  return largest;
}

// One block for each row: its loss, and 1 if its largest logit is its class. The gradient may be the logits: what a
// thread writes, it alone has read, but for the label's, which all read before.
__global__ void SoftmaxCrossEntropyRows(int64_t columns, const float* logits, const int32_t* classes,
                                        float gradient_scale, float* gradient, double* losses, double* correct) {
  __shared__ double shared[kWarps];
  __shared__ Largest candidates[kThreads];
  const int64_t row = blockIdx.x, label = classes[row];
  logits += row * columns;
  const Largest best = LargestOfRow(logits, columns, candidates);
  const float max = best.at < 0 ? logits[0] : best.value;
  const float label_logit = logits[label];
  const float label_exponential = expf(label_logit - max);
  double others = 0;
  for (int64_t i = threadIdx.x; i < columns; i += kThreads) {
    if (i != label) others += expf(logits[i] - max);
  }
  others = BlockSum(others, shared);
  const double total = others + label_exponential;
  if (threadIdx.x == 0) {
    losses[row] = log(total) - (static_cast<double>(label_logit) - max);
    correct[row] = best.at == label && isfinite(total) ? 1 : 0;
  }
  if (gradient == nullptr) return;
  gradient += row * columns;
  const auto factor = static_cast<float>(gradient_scale / total);
  for (int64_t i = threadIdx.x; i < columns; i += kThreads) {
    // At the label without the cancellation of p - 1 when p is close to one.
    gradient[i] = i == label ? static_cast<float>(-gradient_scale * (others / total)) : expf(logits[i] - max) * factor;
  }
}

// By one block. `counts` may be null.
__global__ void FinishLoss(const double* losses, const double* counts, int64_t n, double scale, double* sums) {
  __shared__ double shared[kWarps];
  double loss = 0, count = 0;
  for (int64_t i = threadIdx.x; i < n; i += kThreads) {
    loss += losses[i];
    if (counts != nullptr) count += counts[i];
  }
  loss = BlockSum(loss, shared);
  count = BlockSum(count, shared);
  if (threadIdx.x == 0) {
    sums[0] = loss * scale;
    sums[1] = count;
  }
}

__global__ void PartialBinaryCrossEntropy(int64_t rows, const float* logits, const int32_t* classes,
                                          float gradient_scale, float* gradient, double* losses, double* correct) {
  __shared__ double shared[kWarps];
  double loss = 0, count = 0;
  for (int64_t row = First(); row < rows; row += Stride()) {
    const float logit = logits[row];
    const bool is_one = classes[row] == 1;
    // The logit of the other class.
    const double other = is_one ? -logit : logit;
    loss += (other < 0 ? 0 : other) + log1p(exp(-fabs(other)));
    count += (is_one ? logit > 0 : logit <= 0) ? 1 : 0;
    // Without the cancellation of p - 1 when p is close to one.
    if (gradient != nullptr) {
      gradient[row] = static_cast<float>((is_one ? -gradient_scale : gradient_scale) / (1 + exp(-other)));
    }
  }
  loss = BlockSum(loss, shared);
  count = BlockSum(count, shared);
  if (threadIdx.x == 0) {
    losses[blockIdx.x] = loss;
    correct[blockIdx.x] = count;
  }
}

__global__ void PartialSquaredErrors(int64_t n, const float* outputs, const float* targets, float factor,
                                     float* gradient, double* partials) {
  __shared__ double shared[kWarps];
  double squares = 0;
  for (int64_t i = First(); i < n; i += Stride()) {
    const float output = outputs[i], target = targets[i];
    const double difference = static_cast<double>(output) - target;
    squares += difference * difference;
    if (gradient != nullptr) gradient[i] = factor * (output - target);
  }
  squares = BlockSum(squares, shared);
  if (threadIdx.x == 0) partials[blockIdx.x] = squares;
}

}  // namespace

absl::Status SoftmaxCrossEntropy(Work& work, int64_t rows, int64_t columns, const float* logits, const int32_t* classes,
                                 float gradient_scale, float* gradient, double* sums) {
  RUBATO_ASSIGN_OR_RETURN(double* losses, work.Scratch<double>(rows));
  RUBATO_ASSIGN_OR_RETURN(double* correct, work.Scratch<double>(rows));
  if (rows > 0) {
    RUBATO_CUDA_LAUNCH(SoftmaxCrossEntropyRows, static_cast<unsigned>(rows), kThreads, work.stream(), columns, logits,
                       classes, gradient_scale, gradient, losses, correct);
  }
  RUBATO_CUDA_LAUNCH(FinishLoss, 1, kThreads, work.stream(), losses, correct, rows, 1.0, sums);
  return absl::OkStatus();
}

absl::Status BinaryCrossEntropy(Work& work, int64_t rows, const float* logits, const int32_t* classes,
                                float gradient_scale, float* gradient, double* sums) {
  const unsigned blocks = Blocks(rows);
  RUBATO_ASSIGN_OR_RETURN(double* losses, work.Scratch<double>(blocks));
  RUBATO_ASSIGN_OR_RETURN(double* correct, work.Scratch<double>(blocks));
  RUBATO_CUDA_LAUNCH(PartialBinaryCrossEntropy, blocks, kThreads, work.stream(), rows, logits, classes, gradient_scale,
                     gradient, losses, correct);
  RUBATO_CUDA_LAUNCH(FinishLoss, 1, kThreads, work.stream(), losses, correct, static_cast<int64_t>(blocks), 1.0, sums);
  return absl::OkStatus();
}

absl::Status MeanSquaredError(Work& work, int64_t rows, int64_t columns, const float* outputs, const float* targets,
                              float gradient_scale, float* gradient, double* sums) {
  const int64_t n = rows * columns;
  const unsigned blocks = Blocks(n);
  RUBATO_ASSIGN_OR_RETURN(double* partials, work.Scratch<double>(blocks));
  const float factor = columns == 0 ? 0 : gradient_scale * 2 / static_cast<float>(columns);
  RUBATO_CUDA_LAUNCH(PartialSquaredErrors, blocks, kThreads, work.stream(), n, outputs, targets, factor, gradient,
                     partials);
  const double scale = columns == 0 ? 0 : 1 / static_cast<double>(columns);
  const double* no_counts = nullptr;
  RUBATO_CUDA_LAUNCH(FinishLoss, 1, kThreads, work.stream(), partials, no_counts, static_cast<int64_t>(blocks), scale,
                     sums);
  return absl::OkStatus();
}

}  // namespace rubato::cuda
