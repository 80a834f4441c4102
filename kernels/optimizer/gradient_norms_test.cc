#include "kernels/optimizer/gradient_norms.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "common/byte_span.h"
#include "common/random.h"
#include "kernels/codec/codec.h"

namespace rubato {
namespace {

constexpr int64_t kLengths[] = {1, 7, 16, 255, 256, 257, 5000};

std::vector<float> RandomGradient(uint64_t stream, int64_t n) {
  std::vector<float> values(n);
  Random random(11, stream);
  for (float& value : values) value = static_cast<float>(random.Normal());
  return values;
}

// Gradients of n elements and what they are reduced with.
struct Contributions {
  explicit Contributions(int64_t n) {
    const float weights[] = {0.5f, 0.125f, 0.375f};
    for (int k = 0; k < 3; ++k) values.push_back(RandomGradient(k, n));
    for (int k = 0; k < 3; ++k) spans.push_back(BytesOf(values[k].data(), n));
    for (int k = 0; k < 3; ++k) gradients.push_back({.pieces = {&spans[k], 1}, .weight = weights[k]});
  }

  int count() const { return static_cast<int>(gradients.size()); }
  // In float64.
  GradientNorms Expected() const {
    GradientNorms norms;
    norms.squares.resize(values.size());
    for (size_t i = 0; i < values[0].size(); ++i) {
      double sum = 0;
      for (size_t k = 0; k < values.size(); ++k) {
        const double value = values[k][i];
        norms.squares[k] += value * value;
        sum += static_cast<double>(gradients[k].weight) * value;
      }
      norms.sum_square += sum * sum;
    }
    return norms;
  }

  std::vector<std::vector<float>> values;
  std::vector<ByteSpan> spans;
  std::vector<EncodedGradient> gradients;
};

TEST(GradientNormsTest, AreThoseOfFloat64) {
  for (const int64_t n : kLengths) {
    const Contributions contributions(n);
    const GradientNorms expected = contributions.Expected();
    const GradientNorms norms = MeasureNorms(contributions.gradients.data(), contributions.count(), n, 1);
    ASSERT_EQ(norms.squares.size(), 3u);
    for (size_t k = 0; k < 3; ++k) EXPECT_NEAR(norms.squares[k] / expected.squares[k], 1, 1e-5) << n;
    EXPECT_NEAR(norms.sum_square / expected.sum_square, 1, 1e-4) << n;
  }
}

TEST(GradientNormsTest, HaveTheSameBitsOnEveryInstructionSet) {
  for (const int64_t n : kLengths) {
    const Contributions contributions(n);
    const GradientNorms expected = MeasureNormsOn(Isa::kBaseline, contributions.gradients.data(), 3, n, 1);
    for (Isa isa : kAllIsas) {
      if (!Supports(isa)) continue;
      const GradientNorms norms = MeasureNormsOn(isa, contributions.gradients.data(), 3, n, 1);
      EXPECT_EQ(norms.squares, expected.squares) << IsaName(isa) << " " << n;
      EXPECT_EQ(norms.sum_square, expected.sum_square) << IsaName(isa) << " " << n;
      EXPECT_EQ(norms.sketches, expected.sketches) << IsaName(isa) << " " << n;
    }
  }
}

double Product(const GradientSketch& a, const GradientSketch& b) {
  double product = 0;
  for (size_t i = 0; i < a.size(); ++i) product += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  return product;
}

TEST(GradientNormsTest, SketchesKeepProductsInTheMean) {
  const int64_t n = 5000;
  const Contributions contributions(n);
  double exact = 0;
  for (int64_t i = 0; i < n; ++i) {
    exact += static_cast<double>(contributions.values[0][i]) * static_cast<double>(contributions.values[1][i]);
  }
  const GradientNorms norms = contributions.Expected();
  const double size = std::sqrt(norms.squares[0] * norms.squares[1]);
  constexpr int kStreams = 400;
  double product = 0, square = 0, deviation = 0;
  for (uint64_t stream = 0; stream < kStreams; ++stream) {
    const GradientNorms measured = MeasureNorms(contributions.gradients.data(), 3, n, stream);
    const double one = Product(measured.sketches[0], measured.sketches[1]);
    product += one / kStreams;
    deviation += (one - exact) * (one - exact) / kStreams;
    square += Product(measured.sketches[0], measured.sketches[0]) / kStreams;
  }
  EXPECT_NEAR(product / size, exact / size, 0.03);
  EXPECT_NEAR(square / norms.squares[0], 1, 0.03);
  EXPECT_NEAR(std::sqrt(deviation) / size, 0.125, 0.03);
}

TEST(GradientNormsTest, ASketchOfFewElementsHasThemAll) {
  const Contributions contributions(40);
  const GradientNorms norms = MeasureNorms(contributions.gradients.data(), 3, 40, 9);
  EXPECT_NEAR(Product(norms.sketches[0], norms.sketches[0]) / norms.squares[0], 1, 1e-5);
  EXPECT_EQ(norms.sketches[0][40], 0);
}

TEST(GradientNormsTest, ReadPiecesThatCutElements) {
  const int64_t n = 1000;
  const Contributions contributions(n);
  const ByteSpan whole = contributions.spans[0];
  const std::vector<ByteSpan> pieces = {whole.subspan(0, 1023), whole.subspan(1023, 2), whole.subspan(1025)};
  EncodedGradient cut = contributions.gradients[0];
  cut.pieces = pieces;
  EXPECT_EQ(MeasureNorms(&cut, 1, n, 1).squares, MeasureNorms(contributions.gradients.data(), 1, n, 1).squares);
}

TEST(GradientNormsTest, DecodeWhatWasEncoded) {
  const int64_t n = 700;
  const CodecSpec codec = {v1::BF16, 0};
  const std::vector<float> values = RandomGradient(5, n);
  std::vector<uint8_t> encoded(MaxEncodedBytes(codec, n));
  encoded.resize(Encode(codec, values.data(), n, nullptr, 1, 2, encoded.data()));
  const ByteSpan span(encoded);
  const EncodedGradient gradient = {.pieces = {&span, 1}, .weight = 1, .codec = v1::BF16};
  const GradientNorms norms = MeasureNorms(&gradient, 1, n, 1);
  double expected = 0;
  for (const float value : values) expected += static_cast<double>(value) * value;
  EXPECT_NEAR(norms.squares[0] / expected, 1, 1e-2);
  EXPECT_EQ(norms.squares[0], norms.sum_square);
}

TEST(GradientNormsTest, OfNothingAreZero) {
  const GradientNorms norms = MeasureNorms(nullptr, 0, 100, 1);
  EXPECT_TRUE(norms.squares.empty());
  EXPECT_EQ(norms.sum_square, 0);
}

TEST(GradientNormsTest, OfWhatIsTooLargeAreInfinite) {
  const float value = 1e20f;
  const ByteSpan span = BytesOf(&value, 1);
  const EncodedGradient gradient = {.pieces = {&span, 1}};
  EXPECT_TRUE(std::isinf(MeasureNorms(&gradient, 1, 1, 1).squares[0]));
}

}  // namespace
}  // namespace rubato
