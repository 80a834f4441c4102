#include "cli/command/codec_choice.h"

#include <gtest/gtest.h>

namespace rubato {
namespace {

TEST(CodecChoiceTest, ReadsWhatItWrites) {
  auto codecs = ParseCodecs({"none", "bf16", "int8", "one_bit", "top_k:0.01"}, "--codecs");
  ASSERT_TRUE(codecs.ok()) << codecs.status();
  ASSERT_EQ(codecs->size(), 5u);
  EXPECT_EQ((*codecs)[1].codec, v1::BF16);
  EXPECT_EQ((*codecs)[4].fraction, 0.01);
  EXPECT_EQ((*codecs)[3].Name(), "one_bit");
  EXPECT_EQ((*codecs)[4].Name(), "top_k:0.01");
}

TEST(CodecChoiceTest, RefusesOthersByName) {
  for (const char* text : {"zip", "", "top_k", "top_k:0", "top_k:2", "codec_unspecified"}) {
    EXPECT_EQ(ParseCodecs({text}, "--codecs").status().code(), absl::StatusCode::kInvalidArgument) << text;
  }
  EXPECT_EQ(ParseCodecs({"bf16", "bf16"}, "--codecs").status().message(), "--codecs: bf16 is given twice");
}

TEST(CodecChoiceTest, EncodesWeightsOnlyWithCodecsThatSuitThem) {
  auto config = v1::JobConfig();
  config.set_name("job");
  config.mutable_cluster()->set_workers(1);
  config.mutable_model()->add_input_shape(4);
  config.mutable_model()->add_layers()->mutable_linear()->set_units(2);
  config.mutable_model()->set_loss(v1::ModelConfig::SOFTMAX_CROSS_ENTROPY);
  config.mutable_data()->mutable_teacher()->set_train_examples(8);
  config.mutable_optimizer()->set_algorithm(v1::OptimizerConfig::SGD);
  config.mutable_optimizer()->set_learning_rate(1);
  config.mutable_consistency()->set_mode(v1::SYNC);
  config.mutable_training()->set_batch_size(1);
  config.mutable_training()->set_epochs(1);
  auto both = ConfigWithCodec(config, {v1::INT8, 0});
  ASSERT_TRUE(both.ok()) << both.status();
  EXPECT_EQ(both->compression().pull().codec(), v1::INT8);
  auto push = ConfigWithCodec(config, {v1::TOP_K, 0.5});
  ASSERT_TRUE(push.ok()) << push.status();
  EXPECT_EQ(push->compression().push().fraction(), 0.5);
  EXPECT_EQ(push->compression().pull().codec(), v1::NONE);
}

}  // namespace
}  // namespace rubato
