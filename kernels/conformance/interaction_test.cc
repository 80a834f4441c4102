#include <cmath>
#include <limits>

#include "kernels/conformance/harness.h"

namespace rubato::conformance {
namespace {

TEST_P(ConformanceTest, MultiplyMatchesReference) {
  for (int64_t n : {1, 8, 2003}) {
    const Values a = RandomValues(n), b = RandomValues(n), before = RandomValues(n);
    Values product(n), sum(n);
    for (int64_t i = 0; i < n; ++i) {
      product[i] = a[i] * b[i];
      sum[i] = before[i] + product[i];
    }
    DeviceTensor device_a = UploadActivation({n}, a), device_b = UploadActivation({n}, b);
    DeviceTensor y = UnwrittenActivation({n}), accumulated = UploadActivation({n}, before);
    EXPECT_OK(backend_->Multiply(device_a, device_b, false, y));
    ExpectClose(y, product, "y");
    EXPECT_OK(backend_->Multiply(device_a, device_b, true, accumulated));
    ExpectClose(accumulated, sum, "accumulated");
    EXPECT_OK(backend_->Multiply(device_a, device_b, false, device_a));
    ExpectClose(device_a, product, "in place");
  }
}

TEST_P(ConformanceTest, CopyColumnsLeavesTheRestOfTheRows) {
  const Shape from = {5, 3, 4}, to = {5, 9};
  const Values x = RandomValues(60), before = RandomValues(45);
  for (const bool accumulate : {false, true}) {
    SCOPED_TRACE(accumulate);
    Values expected = before;
    for (int64_t row = 0; row < 5; ++row) {
      for (int64_t i = 0; i < 6; ++i) {
        double& element = expected[row * 9 + 2 + i];
        element = x[row * 12 + 5 + i] + (accumulate ? element : 0);
      }
    }
    DeviceTensor y = UploadActivation(to, before);
    EXPECT_OK(backend_->CopyColumns({.from = 5, .count = 6, .to = 2}, accumulate, UploadActivation(from, x), y));
    ExpectClose(y, expected, "y");
    EXPECT_OK(backend_->CopyColumns({.from = 12, .count = 0, .to = 9}, accumulate, UploadActivation(from, x), y));
    ExpectClose(y, expected, "y, of no columns");
  }
}

TEST_P(ConformanceTest, CopyColumnsRefusesWhatDoesNotFit) {
  const DeviceTensor x = EmptyActivation({5, 12}), y = EmptyActivation({5, 9});
  for (const ColumnRange& range : {ColumnRange{.from = 7, .count = 6, .to = 0}, ColumnRange{.count = 6, .to = 4},
                                   ColumnRange{.from = -1, .count = 1}, ColumnRange{.count = -1},
                                   ColumnRange{.count = std::numeric_limits<int64_t>::max(), .to = 9}}) {
    EXPECT_EQ(backend_->CopyColumns(range, false, x, y).code(), absl::StatusCode::kOutOfRange) << range.count;
  }
  EXPECT_EQ(backend_->CopyColumns({.count = 1}, false, x, EmptyActivation({4, 9})).code(),
            absl::StatusCode::kInvalidArgument);
}

struct InteractionCase {
  int64_t rows, vectors, width;
};

// Widths and numbers of vectors under, at and over what is computed together; and more rows than a block has warps.
constexpr InteractionCase kInteractions[] = {{1, 2, 1}, {3, 27, 16}, {70, 27, 8}, {2, 9, 5}, {5, 8, 40}, {2, 40, 3}};

TEST_P(ConformanceTest, DotInteractionMatchesReference) {
  for (const auto& [rows, vectors, width] : kInteractions) {
    SCOPED_TRACE(testing::Message() << rows << " rows of " << vectors << " vectors of " << width);
    const Shape inputs = {rows, vectors * width}, outputs = {rows, width + vectors * (vectors - 1) / 2};
    const Values x = RandomValues(NumElements(inputs)), dy = RandomValues(NumElements(outputs));
    DeviceTensor device_x = UploadActivation(inputs, x), y = UnwrittenActivation(outputs);
    EXPECT_OK(backend_->DotInteraction(width, device_x, y));
    ExpectClose(y, reference::DotInteraction(rows, width, x), "y");
    DeviceTensor dx = UnwrittenActivation(inputs);
    EXPECT_OK(backend_->DotInteractionBackward(width, device_x, UploadActivation(outputs, dy), dx));
    ExpectClose(dx, reference::DotInteractionBackward(rows, width, x, dy), "dx");
  }
}

TEST_P(ConformanceTest, FactorizationMachineMatchesReference) {
  for (const auto& [rows, vectors, width] : kInteractions) {
    SCOPED_TRACE(testing::Message() << rows << " rows of " << vectors << " vectors of " << width);
    const Shape inputs = {rows, vectors * width};
    const Values x = RandomValues(NumElements(inputs)), dy = RandomValues(rows);
    DeviceTensor device_x = UploadActivation(inputs, x), y = UnwrittenActivation({rows, 1});
    EXPECT_OK(backend_->FactorizationMachine(width, device_x, y));
    ExpectClose(y, reference::FactorizationMachine(rows, width, x), "y");
    DeviceTensor dx = UnwrittenActivation(inputs);
    EXPECT_OK(backend_->FactorizationMachineBackward(width, device_x, UploadActivation({rows, 1}, dy), dx));
    ExpectClose(dx, reference::FactorizationMachineBackward(rows, width, x, dy), "dx");
  }
}

// Half of the difference of |sum|^2 and the sum of |x|^2 would be far off: they are 10^6 times as large.
TEST_P(ConformanceTest, FactorizationMachineDoesNotCancel) {
  DeviceTensor y = UnwrittenActivation({1, 1});
  EXPECT_OK(backend_->FactorizationMachine(1, UploadActivation({1, 2}, {1024, 1.0 / 1024}), y));
  EXPECT_EQ(Download(y)[0], 1);
}

TEST_P(ConformanceTest, InteractionsRefuseShapesThatDoNotFit) {
  const DeviceTensor x = EmptyActivation({2, 12});
  EXPECT_EQ(backend_->DotInteraction(5, x, EmptyActivation({2, 8})).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(backend_->DotInteraction(0, x, EmptyActivation({2, 8})).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(backend_->DotInteraction(12, x, EmptyActivation({2, 12})).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(backend_->DotInteraction(4, x, EmptyActivation({2, 8})).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_OK(backend_->DotInteraction(4, x, EmptyActivation({2, 7})));
  EXPECT_EQ(backend_->FactorizationMachine(4, x, EmptyActivation({2, 2})).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(backend_->FactorizationMachineBackward(4, x, EmptyActivation({2, 1}), EmptyActivation({2, 11})).code(),
            absl::StatusCode::kInvalidArgument);
}

INSTANTIATE_TEST_SUITE_P(Interactions, ConformanceTest, ::testing::ValuesIn(AllBackends()), CaseName);

}  // namespace
}  // namespace rubato::conformance
