#include "client/link/tensor_layout.h"

#include <gtest/gtest.h>

namespace rubato::client {
namespace {

TEST(TensorLayoutTest, PlacesDoNotOverlapAndAreAligned) {
  TensorLayout layout;
  ASSERT_EQ(
      MakeTensorLayout({{.name = "a", .shape = {3, 5}}, {.name = "b"}, {.name = "c", .shape = {100, 1000}}}, &layout),
      "");
  ASSERT_EQ(layout.tensors.size(), 3u);
  EXPECT_EQ(layout.tensors[0].elements, 15u);
  EXPECT_EQ(layout.tensors[1].elements, 1u);
  EXPECT_EQ(layout.tensors[2].elements, 100000u);
  size_t end = 0;
  const auto expect_after = [&](size_t begin, size_t elements) {
    EXPECT_GE(begin, end);
    EXPECT_EQ(begin % kTensorAlignment, 0u);
    end = begin + elements * sizeof(float);
  };
  for (const TensorLayout::Place& place : layout.tensors) expect_after(place.weights, place.elements);
  for (const TensorLayout::Place& place : layout.tensors) expect_after(place.gradient, place.elements);
  EXPECT_LE(end, layout.tensor_bytes);
  // What encoding all gradients may take.
  EXPECT_GE(layout.total_bytes, layout.tensor_bytes + 2 * 100016 * sizeof(float));
}

TEST(TensorLayoutTest, NamesTheTensorWhoseShapeIsNoGood) {
  TensorLayout layout;
  EXPECT_EQ(MakeTensorLayout({{.name = "a", .shape = {3, 0}}}, &layout),
            "tensor a: a dimension of 0; 1 or more is allowed");
  EXPECT_EQ(MakeTensorLayout({{.name = "a", .shape = {int64_t{1} << 40, int64_t{1} << 40}}}, &layout),
            "tensor a: more than 2^40 elements");
  EXPECT_EQ(MakeTensorLayout({{.name = "a", .shape = {int64_t{1} << 40}}, {.name = "b"}}, &layout),
            "the model: more than 2^40 elements up to tensor b");
}

}  // namespace
}  // namespace rubato::client
