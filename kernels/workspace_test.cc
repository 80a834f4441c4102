#include "kernels/workspace.h"

#include <gtest/gtest.h>

namespace rubato {
namespace {

constexpr WorkspaceRules kRules = {
    .fixed_bytes = 1000, .gathered_bytes = 2, .im2col_elements = 1000, .score_elements = 10000};

// 2 * 3 * 3 = 18 taps and 4 * 4 = 16 positions: 288 elements an image.
constexpr Conv2dGeometry kConv = {.channels = 2, .height = 4, .width = 4, .filters = 5, .kernel = 3, .padding = 1};

TEST(WorkspaceTest, ConvolutionsTakeAsManyImagesThroughIm2colAsFit) {
  EXPECT_EQ(ImagesAtOnce(kRules, kConv, 100), 3);
  EXPECT_EQ(ImagesAtOnce(kRules, kConv, 2), 2);
  EXPECT_EQ(ImagesAtOnce(kRules, kConv, 0), 1);
  Conv2dGeometry large = kConv;
  large.height = large.width = 100;
  EXPECT_EQ(ImagesAtOnce(kRules, large, 100), 1);
}

TEST(WorkspaceTest, ConvolutionsTakeWhatTheirLargestPassTakes) {
  const int64_t columns = 3 * 288, weights = 5 * 18;
  // The backward pass to the data has its columns in float32; what the weight's gradient may take counts beside it.
  EXPECT_EQ(Conv2dWorkspaceBytes(kRules, kConv, 10), columns * 4 + weights * 2);
  EXPECT_EQ(Conv2dWorkspaceBytes({}, kConv, 10), 0);
}

TEST(WorkspaceTest, ScoresTakeWholeBlocksOfRowsAndAtLeastOne) {
  const AttentionGeometry attention = {.sequence = 32, .heads = 2, .head_width = 4};
  EXPECT_EQ(ScoreRowsAtOnce(kRules, attention, 2), 32);
  const AttentionGeometry longer = {.sequence = 100, .heads = 2, .head_width = 4};
  EXPECT_EQ(ScoreRowsAtOnce(kRules, longer, 1), 64);
  EXPECT_EQ(ScoreRowsAtOnce(kRules, longer, 50), 64);
}

TEST(WorkspaceTest, AttentionGrowsWithTheBatch) {
  const AttentionGeometry attention = {.sequence = 8, .heads = 2, .head_width = 4};
  const int64_t elements = 3 * 8 * 8, scores = 3 * 2 * 8 * 8;
  EXPECT_EQ(AttentionWorkspaceBytes(kRules, attention, 3),
            4 * elements * 2 + 3 * 2 * 8 * 4 + 3 * elements * 4 + 2 * scores * (4 + 2));
  EXPECT_EQ(AttentionWorkspaceBytes({}, attention, 3), 0);
}

TEST(WorkspaceTest, FusedAttentionHasNoScoresInMemory) {
  WorkspaceRules rules = kRules;
  rules.fused_attention = true;
  const AttentionGeometry attention = {.sequence = 8, .heads = 2, .head_width = 64};
  EXPECT_TRUE(FusesAttention(rules, attention));
  EXPECT_EQ(AttentionWorkspaceBytes(rules, attention, 3), 3 * 2 * 8 * 4);
  EXPECT_FALSE(FusesAttention(kRules, attention));
  EXPECT_FALSE(FusesAttention(rules, {.sequence = 8, .heads = 2, .head_width = 24}));
}

}  // namespace
}  // namespace rubato
