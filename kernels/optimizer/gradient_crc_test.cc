#include "kernels/optimizer/gradient_crc.h"

#include <array>

#include <gtest/gtest.h>

#include "common/byte_span.h"

namespace rubato {
namespace {

TEST(GradientCrcTest, IsZlibsOfAllPieces) {
  const std::array<uint8_t, 9> bytes = {'1', '2', '3', '4', '5', '6', '7', '8', '9'};
  const ByteSpan whole(bytes);
  // The check value of this polynomial.
  EXPECT_EQ(GradientCrc({.pieces = {&whole, 1}}), 0xCBF43926u);
  const std::array<ByteSpan, 2> cut = {whole.subspan(0, 4), whole.subspan(4)};
  EXPECT_EQ(GradientCrc({.pieces = cut}), 0xCBF43926u);
}

}  // namespace
}  // namespace rubato
