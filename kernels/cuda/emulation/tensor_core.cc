// A warp's matrices on an emulated card: what each lane has is as the PTX ISA says, and so is what it gets.

#include "kernels/cuda/tensor_core.h"

#include <bit>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "kernels/cuda/emulation/threads.h"

namespace rubato::cuda {
namespace {

constexpr int kWarp = 32;

float Element(__nv_bfloat16 x) { return __bfloat162float(x); }
float Element(__half x) { return __half2float(x); }

// What each lane of a warp gives.
struct WarpValues {
  explicit WarpValues(uint32_t value) {
    const emulation::Exchange given = emulation::AwaitWarp(value);
    lane = given.lane;
    std::memcpy(values, given.values, sizeof(values));
  }

  // One of the two elements that a lane's value holds.
  template <typename T>
  float At(int of_lane, int element) const {
    return Element(std::bit_cast<T>(static_cast<uint16_t>(values[of_lane] >> 16 * element)));
  }

  int lane;
  uint32_t values[kWarp];
};

template <typename T>
void Multiply(const LeftFragment& left, const RightFragment& right, SumFragment& sum) {
  const WarpValues a[4] = {WarpValues(left.pairs[0]), WarpValues(left.pairs[1]), WarpValues(left.pairs[2]),
                           WarpValues(left.pairs[3])};
  const WarpValues b[2] = {WarpValues(right.pairs[0]), WarpValues(right.pairs[1])};
  const auto a_at = [&](int row, int k) { return a[row / 8 + k / 8 * 2].At<T>(row % 8 * 4 + k % 8 / 2, k % 2); };
  const auto b_at = [&](int k, int column) { return b[k / 8].At<T>(column * 4 + k % 8 / 2, k % 2); };
  for (int i = 0; i < 4; ++i) {
    const int row = a[0].lane / 4 + i / 2 * 8, column = a[0].lane % 4 * 2 + i % 2;
    for (int k = 0; k < 16; ++k) sum.values[i] += a_at(row, k) * b_at(k, column);
  }
}

}  // namespace

template <>
void MultiplyAdd<__nv_bfloat16>(const LeftFragment& a, const RightFragment& b, SumFragment& sum) {
  Multiply<__nv_bfloat16>(a, b, sum);
}

template <>
void MultiplyAdd<__half>(const LeftFragment& a, const RightFragment& b, SumFragment& sum) {
  Multiply<__half>(a, b, sum);
}

void LoadMatrices(const void* row, bool transposed, uint32_t (&pairs)[4]) {
  const auto address = reinterpret_cast<uintptr_t>(row);
  if (address % 16 != 0) {
    std::fprintf(stderr, "LoadMatrices: a row at %p, which is not at a multiple of 16 bytes\n", row);
    std::abort();
  }
  const WarpValues low(static_cast<uint32_t>(address)), high(static_cast<uint32_t>(address >> 32));
  const int l = low.lane / 4, r = low.lane % 4;
  for (int matrix = 0; matrix < 4; ++matrix) {
    uint16_t elements[2];
    for (int i = 0; i < 2; ++i) {
      const int from_row = transposed ? 2 * r + i : l, column = transposed ? l : 2 * r + i, of = matrix * 8 + from_row;
      const auto* const begin =
          reinterpret_cast<const uint16_t*>(static_cast<uintptr_t>(high.values[of]) << 32 | low.values[of]);
      elements[i] = begin[column];
    }
    std::memcpy(&pairs[matrix], elements, sizeof(elements));
  }
  // All lanes have read before any goes on.
  (void)emulation::AwaitWarp(0);
}

}  // namespace rubato::cuda
