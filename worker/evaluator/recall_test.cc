#include "worker/evaluator/recall.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "common/random.h"

namespace rubato::worker {
namespace {

TEST(RecallTest, IsTheShareOfClassesThatAStableSortHasAmongTheFirst) {
  constexpr int kClasses = 20, kExamples = 500;
  Random random(3);
  for (const int k : {1, 5, 20}) {
    Recall recall(k);
    int found = 0;
    for (int example = 0; example < kExamples; ++example) {
      std::vector<float> outputs(kClasses);
      // Many of them equal.
      for (float& output : outputs) output = static_cast<float>(random.Below(8));
      const auto label = static_cast<int32_t>(random.Below(kClasses));
      std::vector<int> order(kClasses);
      std::iota(order.begin(), order.end(), 0);
      std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return outputs[a] > outputs[b]; });
      found += std::find(order.begin(), order.begin() + k, label) != order.begin() + k;
      recall.Add(outputs.data(), kClasses, label);
    }
    EXPECT_DOUBLE_EQ(*recall.Value(), static_cast<double>(found) / kExamples) << k;
  }
}

TEST(RecallTest, WhatIsNotANumberIsFoundLast) {
  const float outputs[] = {NAN, -INFINITY, 1, NAN};
  for (const auto& [label, place] : {std::pair(2, 0), std::pair(1, 1), std::pair(0, 2), std::pair(3, 3)}) {
    for (int k = 1; k <= 4; ++k) {
      Recall recall(k);
      recall.Add(outputs, 4, label);
      EXPECT_EQ(*recall.Value(), place < k ? 1 : 0) << label << " at " << k;
    }
  }
}

TEST(RecallTest, IsAbsentWithoutExamples) { EXPECT_FALSE(Recall(1).Value().has_value()); }

}  // namespace
}  // namespace rubato::worker
