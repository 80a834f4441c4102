#include "kernels/cuda/encode.h"

#include <cub/device/device_radix_sort.cuh>

#include "kernels/cuda/launch.h"
#include "kernels/cuda/philox.h"

namespace rubato::cuda {
namespace {

// Elements with one scale, one to a thread.
constexpr int kBlock = 256;
static_assert(kBlock == kThreads);
constexpr int64_t kInt8BlockBytes = 4 + kBlock;
constexpr int64_t kOneBitBlockBytes = 8 + kBlock / 8;
constexpr uint32_t kMagnitudeBits = 0x7fffffffu;
constexpr uint32_t kInfinityBits = 0x7f800000u;
constexpr uint32_t kNanBits = 0x7fc00000u;
constexpr float kMaxFloat = 0x1.fffffep127f;
constexpr float kSmallestInt8 = 0x1p-105f;
constexpr float kMaxInt8Scale = 8454659 * 0x1p98f;

__device__ inline uint32_t Magnitude(float value) { return __float_as_uint(value) & kMagnitudeBits; }

__device__ inline uint16_t ToBf16(uint32_t bits) {
  const uint32_t magnitude = bits & kMagnitudeBits;
  const uint32_t nearest_even = (bits + 0x7fffu + ((bits >> 16) & 1)) >> 16;
  const uint32_t cut = (bits >> 16) | (magnitude > kInfinityBits ? 0x40u : 0u);
  return static_cast<uint16_t>(magnitude > 0x7f7f7fffu ? cut : nearest_even);
}

__device__ inline uint16_t ToFp16(uint32_t bits) {
  constexpr uint32_t kLargest = 0x477fe000u;         // 65504.
  constexpr uint32_t kSmallestNormal = 0x38800000u;  // 2^-14.
  const uint32_t magnitude = bits & kMagnitudeBits;
  const uint32_t finite = magnitude < kLargest ? magnitude : kLargest;
  const uint32_t normal = (finite + 0xfffu + ((finite >> 13) & 1) - (112u << 23)) >> 13;
  const uint32_t subnormal = __float_as_uint(__uint_as_float(finite) + 0.5f) - 0x3f000000u;
  const uint32_t special = magnitude > kInfinityBits ? 0x7e00u | ((magnitude >> 13) & 0x1ffu) : 0x7c00u;
  const uint32_t rounded = finite < kSmallestNormal ? subnormal : normal;
  return static_cast<uint16_t>(((bits >> 16) & 0x8000u) | (magnitude >= kInfinityBits ? special : rounded));
}

__global__ void Bf16Kernel(const float* values, int64_t n, uint16_t* out) {
  for (int64_t i = First(); i < n; i += Stride()) out[i] = ToBf16(__float_as_uint(values[i]));
}

__global__ void Fp16Kernel(const float* values, int64_t n, uint16_t* out) {
  for (int64_t i = First(); i < n; i += Stride()) out[i] = ToFp16(__float_as_uint(values[i]));
}

__device__ uint32_t BlockLargest(uint32_t magnitude, uint32_t* shared) {
  const int thread = static_cast<int>(threadIdx.x);
  shared[thread] = magnitude;
  __syncthreads();
  for (int half = kThreads / 2; half > 0; half /= 2) {
    if (thread < half && shared[thread + half] > shared[thread]) shared[thread] = shared[thread + half];
    __syncthreads();
  }
  const uint32_t largest = shared[0];
  __syncthreads();
  return largest;
}

// The draw of element `thread` of a group: half h of word w of the group's Philox block l, where it is 64 w + 32 h + l.
__device__ inline uint32_t Draw(uint64_t seed, uint64_t stream, uint64_t group, int thread) {
  const uint4 block = Philox(seed, stream, 32 * group + thread % 32);
  const uint32_t words[4] = {block.x, block.y, block.z, block.w};
  return (words[thread / 64] >> (16 * (thread / 32 % 2))) & 0xffffu;
}

__global__ void Int8Kernel(const float* values, int64_t n, uint64_t seed, uint64_t stream, uint8_t* out) {
  __shared__ uint32_t shared[kThreads];
  constexpr int kMostParts = 127 << 16;
  const int thread = static_cast<int>(threadIdx.x);
  const int64_t at = static_cast<int64_t>(blockIdx.x) * kBlock + thread;
  const float value = at < n ? values[at] : 0.0f;
  const uint32_t largest_bits = BlockLargest(Magnitude(value), shared);
  const float largest = __uint_as_float(largest_bits);
  out += blockIdx.x * kInt8BlockBytes;
  auto* scale = reinterpret_cast<float*>(out);
  // Below the smallest the factor would be infinite; such elements become zero.
  if (largest_bits >= kInfinityBits || largest < kSmallestInt8) {
    if (thread == 0) *scale = largest_bits < kInfinityBits ? 0.0f : __uint_as_float(kNanBits);
    if (at < n) out[4 + thread] = 0;
    return;
  }
  if (thread == 0) *scale = fminf(largest / 127, kMaxInt8Scale);
  const float scaled = value * ((127 << 16) / largest);
  const int nearest = static_cast<int>(scaled + copysignf(0.5f, scaled));
  const int parts = nearest > kMostParts ? kMostParts : nearest < -kMostParts ? -kMostParts : nearest;
  const int step = (parts + static_cast<int>(Draw(seed, stream, blockIdx.x, thread))) >> 16;
  if (at < n) out[4 + thread] = static_cast<uint8_t>(static_cast<int8_t>(step));
}

// The 32 sums of 8 elements, then of pairs, of kernels/codec/one_bit.cc. `shares` has a block's elements divided
// by kBlock, or 0 for those of the other sign.
__device__ float SumShares(const float* shares, float* sums) {
  const int thread = static_cast<int>(threadIdx.x);
  if (thread < 32) {
    float sum = 0;
    for (int group = 0; group < 8; ++group) sum += shares[32 * group + thread];
    sums[thread] = sum;
  }
  __syncthreads();
  for (int half = 16; half > 0; half /= 2) {
    if (thread < half) sums[thread] += sums[thread + half];
    __syncthreads();
  }
  const float sum = sums[0];
  __syncthreads();
  return sum;
}

__device__ inline float MeanOf(float sum_share, int count) {
  if (count == 0) return 0;
  return fminf(sum_share * (static_cast<float>(kBlock) / static_cast<float>(count)), kMaxFloat);
}

__global__ void OneBitKernel(const float* values, int64_t n, float* residual, uint8_t* out) {
  __shared__ uint32_t magnitudes[kThreads];
  __shared__ float shares[kThreads], sums[32];
  __shared__ uint32_t signs[kThreads / 32];
  const int thread = static_cast<int>(threadIdx.x);
  const int64_t begin = static_cast<int64_t>(blockIdx.x) * kBlock, at = begin + thread;
  const int count = static_cast<int>(n - begin < kBlock ? n - begin : kBlock);
  const float value = at < n ? values[at] + residual[at] : 0.0f;
  const bool finite = BlockLargest(Magnitude(value), magnitudes) < kInfinityBits;
  const bool negative = __float_as_uint(value) >> 31 != 0;
  const uint32_t mask = __ballot_sync(0xffffffffu, negative);
  if (thread % 32 == 0) signs[thread / 32] = mask;
  // As bits without their sign: the sum of the others gets +0, as it does when the sign is masked out.
  const uint32_t share = Magnitude(value * (1.0f / kBlock));
  shares[thread] = negative ? 0.0f : __uint_as_float(share);
  __syncthreads();
  const float up = SumShares(shares, sums);
  shares[thread] = negative ? __uint_as_float(share) : 0.0f;
  __syncthreads();
  const float down = SumShares(shares, sums);
  int negatives = 0;
  for (int i = 0; i < kThreads / 32; ++i) negatives += __popc(signs[i]);
  const float mean_up = MeanOf(up, count - negatives), mean_down = MeanOf(down, negatives);
  out += blockIdx.x * kOneBitBlockBytes;
  if (thread == 0) {
    reinterpret_cast<float*>(out)[0] = finite ? mean_up : __uint_as_float(kNanBits);
    reinterpret_cast<float*>(out)[1] = finite ? mean_down : __uint_as_float(kNanBits);
  }
  if (thread < (count + 7) / 8) {
    out[8 + thread] = finite ? static_cast<uint8_t>(signs[thread / 4] >> (8 * (thread % 4))) : uint8_t{0};
  }
  if (finite && at < n) residual[at] = value - (negative ? -mean_down : mean_up);
}

// Keys that sort by magnitude, and of equal ones by index, when they are sorted downwards and the sort is stable.
__global__ void TopKKeys(const float* values, const float* residual, int64_t n, uint32_t* keys, uint32_t* indices) {
  for (int64_t i = First(); i < n; i += Stride()) {
    keys[i] = Magnitude(values[i] + residual[i]);
    indices[i] = static_cast<uint32_t>(i);
  }
}

__global__ void TopKWrite(const float* values, const float* residual, const uint32_t* indices, int64_t count,
                          uint32_t* out) {
  if (First() == 0) out[0] = static_cast<uint32_t>(count);
  for (int64_t i = First(); i < count; i += Stride()) {
    out[1 + i] = indices[i];
    const uint32_t sum = __float_as_uint(values[indices[i]] + residual[indices[i]]);
    // A GPU's NaN has other bits than the host's.
    out[1 + count + i] = (sum & kMagnitudeBits) > kInfinityBits ? kNanBits : sum;
  }
}

// The residual stays as it was if an element is not finite: the largest key says so.
__global__ void TopKAdd(const float* values, const uint32_t* largest, int64_t n, float* residual) {
  if (*largest >= kInfinityBits) return;
  for (int64_t i = First(); i < n; i += Stride()) residual[i] += values[i];
}

__global__ void TopKClear(const uint32_t* largest, const uint32_t* indices, int64_t count, float* residual) {
  if (*largest >= kInfinityBits) return;
  for (int64_t i = First(); i < count; i += Stride()) residual[indices[i]] = 0;
}

unsigned BlocksOfElements(int64_t n) { return static_cast<unsigned>((n + kBlock - 1) / kBlock); }

}  // namespace

absl::Status EncodeBf16(Stream stream, const float* values, int64_t n, uint8_t* out) {
  RUBATO_CUDA_LAUNCH(Bf16Kernel, Blocks(n), kThreads, stream, values, n, reinterpret_cast<uint16_t*>(out));
  return absl::OkStatus();
}

absl::Status EncodeFp16(Stream stream, const float* values, int64_t n, uint8_t* out) {
  RUBATO_CUDA_LAUNCH(Fp16Kernel, Blocks(n), kThreads, stream, values, n, reinterpret_cast<uint16_t*>(out));
  return absl::OkStatus();
}

absl::Status EncodeInt8(Stream stream, const float* values, int64_t n, uint64_t seed, uint64_t random_stream,
                        uint8_t* out) {
  if (n == 0) return absl::OkStatus();
  RUBATO_CUDA_LAUNCH(Int8Kernel, BlocksOfElements(n), kThreads, stream, values, n, seed, random_stream, out);
  return absl::OkStatus();
}

absl::Status EncodeOneBit(Stream stream, const float* values, int64_t n, float* residual, uint8_t* out) {
  if (n == 0) return absl::OkStatus();
  RUBATO_CUDA_LAUNCH(OneBitKernel, BlocksOfElements(n), kThreads, stream, values, n, residual, out);
  return absl::OkStatus();
}

absl::Status EncodeTopK(Work& work, const float* values, int64_t n, int64_t count, float* residual, uint8_t* out) {
  auto* words = reinterpret_cast<uint32_t*>(out);
  RUBATO_ASSIGN_OR_RETURN(uint32_t * keys, work.Scratch<uint32_t>(n));
  RUBATO_ASSIGN_OR_RETURN(uint32_t * sorted_keys, work.Scratch<uint32_t>(n));
  RUBATO_ASSIGN_OR_RETURN(uint32_t * indices, work.Scratch<uint32_t>(n));
  RUBATO_ASSIGN_OR_RETURN(uint32_t * sorted, work.Scratch<uint32_t>(n));
  if (count == 0) {
    RUBATO_CUDA_LAUNCH(TopKWrite, 1, kThreads, work.stream(), values, residual, sorted, count, words);
    return absl::OkStatus();
  }
  RUBATO_CUDA_LAUNCH(TopKKeys, Blocks(n), kThreads, work.stream(), values, residual, n, keys, indices);
  const int items = static_cast<int>(n), kept = static_cast<int>(count), bits = 32;
  size_t by_key = 0, by_index = 0;
  RUBATO_CUDA_RETURN_IF_ERROR(cub::DeviceRadixSort::SortPairsDescending(nullptr, by_key, keys, sorted_keys, indices,
                                                                        sorted, items, 0, bits, work.stream()));
  RUBATO_CUDA_RETURN_IF_ERROR(
      cub::DeviceRadixSort::SortKeys(nullptr, by_index, sorted, indices, kept, 0, bits, work.stream()));
  size_t bytes = std::max(by_key, by_index);
  RUBATO_ASSIGN_OR_RETURN(char* storage, work.Scratch<char>(static_cast<int64_t>(bytes)));
  RUBATO_CUDA_RETURN_IF_ERROR(cub::DeviceRadixSort::SortPairsDescending(storage, bytes, keys, sorted_keys, indices,
                                                                        sorted, items, 0, bits, work.stream()));
  // Those that are sent, in their own order.
  RUBATO_CUDA_RETURN_IF_ERROR(
      cub::DeviceRadixSort::SortKeys(storage, bytes, sorted, indices, kept, 0, bits, work.stream()));
  RUBATO_CUDA_LAUNCH(TopKWrite, Blocks(count), kThreads, work.stream(), values, residual, indices, count, words);
  RUBATO_CUDA_LAUNCH(TopKAdd, Blocks(n), kThreads, work.stream(), values, sorted_keys, n, residual);
  RUBATO_CUDA_LAUNCH(TopKClear, Blocks(count), kThreads, work.stream(), sorted_keys, indices, count, residual);
  return absl::OkStatus();
}

}  // namespace rubato::cuda
