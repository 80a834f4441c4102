// A warp's matrices on an emulated GPU: what each lane has is as the PTX ISA says, and so is what it gets.

#include "kernels/cuda/tensor_core.h"

#include <bit>
#include <cmath>
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

// Something of each lane, for all lanes as long as this lives.
template <typename T>
class OfWarp {
 public:
  explicit OfWarp(const T& mine) {
    const emulation::Exchange given = emulation::AwaitWarp(reinterpret_cast<uintptr_t>(&mine));
    lane = given.lane;
    for (int i = 0; i < kWarp; ++i) lanes_[i] = reinterpret_cast<const T*>(given.values[i]);
  }
  // All have read before any goes on.
  ~OfWarp() { (void)emulation::AwaitWarp(0); }
  OfWarp(const OfWarp&) = delete;
  OfWarp& operator=(const OfWarp&) = delete;

  const T& operator[](int of_lane) const { return *lanes_[of_lane]; }

  int lane;

 private:
  const T* lanes_[kWarp];
};

// One of the two elements that 32 bits hold.
template <typename T>
float ElementOf(uint32_t pair, int element) {
  return Element(std::bit_cast<T>(static_cast<uint16_t>(pair >> 16 * element)));
}

struct Operands {
  LeftFragment a;
  RightFragment b;
};

template <typename T>
void Multiply(const Operands& mine, SumFragment& sum) {
  const OfWarp<Operands> all(mine);
  const auto a_at = [&](int row, int k) {
    return ElementOf<T>(all[row % 8 * 4 + k % 8 / 2].a.pairs[row / 8 + k / 8 * 2], k % 2);
  };
  const auto b_at = [&](int k, int column) { return ElementOf<T>(all[column * 4 + k % 8 / 2].b.pairs[k / 8], k % 2); };
  for (int i = 0; i < 4; ++i) {
    const int row = all.lane / 4 + i / 2 * 8, column = all.lane % 4 * 2 + i % 2;
    for (int k = 0; k < 16; ++k) sum.values[i] += a_at(row, k) * b_at(k, column);
  }
}

}  // namespace

float Exp2(float x) {
  const float power = std::exp2(x);
  return std::fpclassify(power) == FP_SUBNORMAL ? 0 : power;
}

template <>
void MultiplyAdd<__nv_bfloat16>(const LeftFragment& a, const RightFragment& b, SumFragment& sum) {
  Multiply<__nv_bfloat16>({a, b}, sum);
}

template <>
void MultiplyAdd<__half>(const LeftFragment& a, const RightFragment& b, SumFragment& sum) {
  Multiply<__half>({a, b}, sum);
}

void LoadMatrices(const void* row, bool transposed, uint32_t (&pairs)[4]) {
  if (reinterpret_cast<uintptr_t>(row) % 16 != 0) {
    std::fprintf(stderr, "LoadMatrices: a row at %p, which is not at a multiple of 16 bytes\n", row);
    std::abort();
  }
  const OfWarp<const void*> rows(row);
  const int l = rows.lane / 4, r = rows.lane % 4;
  for (int matrix = 0; matrix < 4; ++matrix) {
    uint16_t elements[2];
    for (int i = 0; i < 2; ++i) {
      const int from_row = transposed ? 2 * r + i : l, column = transposed ? l : 2 * r + i;
      elements[i] = static_cast<const uint16_t*>(rows[matrix * 8 + from_row])[column];
    }
    std::memcpy(&pairs[matrix], elements, sizeof(elements));
  }
}

}  // namespace rubato::cuda
