#include "common/config/compression.h"

#include <gtest/gtest.h>

namespace rubato {
namespace {

TEST(CompressionTest, NothingIsEncodedUnlessTheConfigSaysSo) {
  const v1::JobConfig config;
  EXPECT_EQ(PushCodec(config, "a.weight").codec(), v1::NONE);
  EXPECT_EQ(PullCodec(config, "a.weight").codec(), v1::NONE);
}

TEST(CompressionTest, TheFirstEntryThatMatchesCounts) {
  v1::JobConfig config;
  v1::CompressionConfig* compression = config.mutable_compression();
  compression->mutable_push()->set_codec(v1::INT8);
  compression->mutable_pull()->set_codec(v1::BF16);
  v1::TensorCompression* entry = compression->add_tensors();
  entry->set_tensor("first.bias");
  entry->mutable_push()->set_codec(v1::NONE);
  entry = compression->add_tensors();
  entry->set_tensor("first.*");
  entry->mutable_push()->set_codec(v1::ONE_BIT);
  entry->mutable_pull()->set_codec(v1::FP16);
  EXPECT_EQ(PushCodec(config, "first.bias").codec(), v1::NONE);
  EXPECT_EQ(PullCodec(config, "first.bias").codec(), v1::BF16);  // The entry leaves it out.
  EXPECT_EQ(PushCodec(config, "first.weight").codec(), v1::ONE_BIT);
  EXPECT_EQ(PullCodec(config, "first.weight").codec(), v1::FP16);
  EXPECT_EQ(PushCodec(config, "second.weight").codec(), v1::INT8);
  EXPECT_EQ(PullCodec(config, "second.weight").codec(), v1::BF16);
}

TEST(CompressionTest, TopKHasAFraction) {
  v1::JobConfig config;
  config.mutable_compression()->mutable_push()->set_codec(v1::TOP_K);
  EXPECT_EQ(PushCodec(config, "a").fraction(), 0.01);
  config.mutable_compression()->mutable_push()->set_fraction(0.5);
  EXPECT_EQ(PushCodec(config, "a").fraction(), 0.5);
}

TEST(CompressionTest, AStarStandsForTheRestOfTheName) {
  EXPECT_TRUE(MatchesTensor("*", "a.weight"));
  EXPECT_TRUE(MatchesTensor("a.*", "a.weight"));
  EXPECT_TRUE(MatchesTensor("a.weight*", "a.weight"));
  EXPECT_FALSE(MatchesTensor("a.*", "ab.weight"));
  EXPECT_FALSE(MatchesTensor("a", "a.weight"));
  EXPECT_FALSE(MatchesTensor("*weight", "a.weight"));
}

}  // namespace
}  // namespace rubato
