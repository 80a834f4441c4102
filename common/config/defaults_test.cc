#include "common/config/defaults.h"

#include <gtest/gtest.h>

namespace rubato {
namespace {

v1::JobConfig Filled(v1::JobConfig config) {
  FillDefaults(&config);
  return config;
}

TEST(DefaultsTest, FillsWhatTheCommentsState) {
  v1::JobConfig config;
  config.set_name("a");
  config.mutable_training()->set_batch_size(32);
  config = Filled(config);
  EXPECT_EQ(config.run_directory(), "runs/a");
  EXPECT_EQ(config.cluster().servers(), 1u);
  EXPECT_EQ(config.cluster().workers(), 0u);
  EXPECT_EQ(config.cluster().chunk_bytes(), 512u << 10);
  EXPECT_EQ(config.cluster().message_bytes(), 1u << 20);
  EXPECT_EQ(config.cluster().partitions_per_server(), 2u);
  EXPECT_EQ(config.cluster().lease_seconds(), 5);
  EXPECT_EQ(config.cluster().start_timeout_seconds(), 60);
  EXPECT_EQ(config.cluster().wait_timeout_seconds(), 600);
  EXPECT_EQ(config.cluster().shared_memory(), v1::ClusterConfig::AUTO);
  EXPECT_EQ(config.cluster().connections_per_server(), 1u);
  EXPECT_EQ(config.cluster().server_grace_seconds(), 30);
  EXPECT_EQ(config.checkpoint().every_steps(), 0);
  EXPECT_EQ(config.checkpoint().every_seconds(), 300);
  EXPECT_EQ(config.checkpoint().keep(), 2u);
  EXPECT_EQ(config.checkpoint().copies(), 1u);
  EXPECT_EQ(config.checkpoint().directory(), "");
  EXPECT_EQ(config.data().dispatch(), v1::DataConfig::DYNAMIC);
  EXPECT_EQ(config.data().shard_examples(), 320);
  EXPECT_EQ(config.data().prefetch_batches(), 4u);
  EXPECT_EQ(config.data().prefetch_threads(), 1u);
  EXPECT_EQ(config.data().memory_bytes(), 1u << 30);
  EXPECT_EQ(config.optimizer().schedule().unit(), v1::LearningRateSchedule::EPOCHS);
  EXPECT_TRUE(config.optimizer().schedule().has_constant());
  EXPECT_EQ(config.consistency().on_non_finite(), v1::ConsistencyConfig::SKIP_STEP);
  EXPECT_EQ(config.consistency().sync_every(), 1);
  EXPECT_EQ(config.consistency().policy(), v1::ConsistencyConfig::SCHEDULE);
  EXPECT_EQ(config.training().micro_batches(), 1u);
  EXPECT_EQ(config.training().gpus(), 1u);
  EXPECT_EQ(config.training().compute_threads(), 1u);
  EXPECT_EQ(config.training().device(), v1::TrainingConfig::AUTO);
  EXPECT_EQ(config.training().precision(), v1::TrainingConfig::FP32);
  EXPECT_FALSE(config.training().has_loss_scale());
  EXPECT_EQ(config.training().step_timeout_seconds(), 300);
  EXPECT_EQ(config.training().trace_steps(), 0);
  EXPECT_EQ(config.compression().push().codec(), v1::NONE);
  EXPECT_EQ(config.compression().pull().codec(), v1::NONE);
  EXPECT_EQ(config.evaluation().every_epochs(), 1);
  EXPECT_EQ(config.evaluation().batch_size(), 500);
  EXPECT_EQ(config.evaluation().target_accuracy(), 0);
}

TEST(DefaultsTest, FillsTheCompensationThatIsChosen) {
  v1::JobConfig config;
  EXPECT_FALSE(Filled(config).consistency().has_compensation());
  v1::CompensationConfig* compensation = config.mutable_consistency()->mutable_compensation();
  compensation->mutable_dc_asgd();
  EXPECT_EQ(Filled(config).consistency().compensation().dc_asgd().lambda(), 0.04);
  compensation->mutable_dc_asgd()->set_adaptive(true);
  EXPECT_EQ(Filled(config).consistency().compensation().dc_asgd().lambda(), 2);
  compensation->mutable_delayed_nesterov();
  EXPECT_EQ(Filled(config).consistency().compensation().delayed_nesterov().momentum(), 0.9);
  EXPECT_FALSE(Filled(config).consistency().compensation().delayed_nesterov().has_learning_rate());
  config.mutable_consistency()->set_sync_every(4);
  EXPECT_EQ(Filled(config).consistency().compensation().delayed_nesterov().learning_rate(), 0.7);
}

TEST(DefaultsTest, CheckpointsFollowStepsOrTime) {
  v1::JobConfig config;
  config.mutable_checkpoint()->set_every_steps(100);
  EXPECT_EQ(Filled(config).checkpoint().every_seconds(), 0);
  config.mutable_checkpoint()->set_every_seconds(60);
  EXPECT_EQ(Filled(config).checkpoint().every_seconds(), 60);
  config.mutable_checkpoint()->set_every_steps(0);
  config.mutable_checkpoint()->set_every_seconds(0);
  EXPECT_EQ(Filled(config).checkpoint().every_seconds(), 0);
}

TEST(DefaultsTest, Fp16ScalesTheLoss) {
  v1::JobConfig config;
  config.mutable_training()->set_precision(v1::TrainingConfig::FP16);
  config = Filled(config);
  EXPECT_EQ(config.training().loss_scale().initial(), 65536);
  EXPECT_EQ(config.training().loss_scale().growth_steps(), 2000);
}

TEST(DefaultsTest, FillsLayersInsideOfBlocks) {
  v1::JobConfig config;
  v1::ResidualLayer* residual = config.mutable_model()->add_layers()->mutable_residual();
  residual->add_layers()->mutable_conv2d()->set_stride(0);
  residual->add_layers()->mutable_residual()->add_layers()->mutable_group_norm();
  residual->mutable_projection();
  config.mutable_data()->mutable_cifar();
  config = Filled(config);
  const v1::ResidualLayer& filled = config.model().layers(0).residual();
  EXPECT_EQ(filled.layers(0).conv2d().stride(), 0);
  EXPECT_EQ(filled.layers(0).conv2d().weight_initializer(), v1::HE_NORMAL);
  EXPECT_EQ(filled.layers(1).residual().layers(0).group_norm().epsilon(), 1e-5);
  EXPECT_EQ(filled.projection().stride(), 1);
  EXPECT_EQ(config.data().cifar().mean(0), 0);
  EXPECT_EQ(config.data().cifar().standard_deviation(0), 1);
}

TEST(DefaultsTest, KeepsWhatIsThere) {
  v1::JobConfig config;
  config.set_run_directory("elsewhere");
  config.mutable_cluster()->set_servers(3);
  config.mutable_optimizer()->mutable_schedule()->set_unit(v1::LearningRateSchedule::STEPS);
  config = Filled(config);
  EXPECT_EQ(config.run_directory(), "elsewhere");
  EXPECT_EQ(config.cluster().servers(), 3u);
  EXPECT_EQ(config.optimizer().schedule().unit(), v1::LearningRateSchedule::STEPS);
}

TEST(DefaultsTest, AWrittenZeroStaysForValidation) {
  v1::JobConfig config;
  config.mutable_cluster()->set_servers(0);
  config.mutable_evaluation()->set_every_epochs(0);
  config = Filled(config);
  EXPECT_EQ(config.cluster().servers(), 0u);
  EXPECT_EQ(config.evaluation().every_epochs(), 0);
  EXPECT_EQ(config.cluster().partitions_per_server(), 2u);
}

TEST(DefaultsTest, FillsParametersOfTheAlgorithmAlone) {
  v1::JobConfig config;
  config.mutable_optimizer()->set_algorithm(v1::OptimizerConfig::ADAMW);
  const v1::OptimizerConfig adam = Filled(config).optimizer();
  EXPECT_EQ(adam.beta1(), 0.9);
  EXPECT_EQ(adam.beta2(), 0.999);
  EXPECT_EQ(adam.epsilon(), 1e-8);
  EXPECT_FALSE(adam.has_momentum());
  config.mutable_optimizer()->set_algorithm(v1::OptimizerConfig::NESTEROV);
  EXPECT_EQ(Filled(config).optimizer().momentum(), 0.9);
  EXPECT_FALSE(Filled(config).optimizer().has_beta1());
  config.mutable_optimizer()->set_momentum(0);
  EXPECT_EQ(Filled(config).optimizer().momentum(), 0);
  config.Clear();
  config.mutable_optimizer()->set_algorithm(v1::OptimizerConfig::ADAGRAD);
  EXPECT_EQ(Filled(config).optimizer().initial_accumulator(), 0.1);
  config.mutable_optimizer()->set_algorithm(v1::OptimizerConfig::RMSPROP);
  EXPECT_EQ(Filled(config).optimizer().rho(), 0.9);
}

TEST(DefaultsTest, TensorsAreWholeIfTheOptimizerNeedsThem) {
  v1::JobConfig config;
  config.mutable_optimizer()->set_algorithm(v1::OptimizerConfig::LARS);
  EXPECT_EQ(Filled(config).cluster().chunk_bytes(), 64u << 20);
  EXPECT_EQ(Filled(config).optimizer().trust_coefficient(), 0.001);
  config.mutable_cluster()->set_chunk_bytes(1 << 20);
  EXPECT_EQ(Filled(config).cluster().chunk_bytes(), 1u << 20) << "if there are no larger ones";
}

TEST(DefaultsTest, FillsLayersAndSources) {
  v1::JobConfig config;
  config.mutable_model()->add_layers()->mutable_conv2d();
  config.mutable_model()->add_layers()->mutable_max_pool2d()->set_window(3);
  config.mutable_model()->add_layers()->mutable_layer_norm();
  config.mutable_model()->add_layers()->mutable_linear();
  config.mutable_data()->mutable_idx();
  config.mutable_optimizer()->mutable_schedule()->mutable_polynomial();
  config.mutable_consistency()->add_schedule();
  config = Filled(config);
  EXPECT_EQ(config.model().layers(0).conv2d().stride(), 1);
  EXPECT_EQ(config.model().layers(0).conv2d().weight_initializer(), v1::HE_NORMAL);
  EXPECT_EQ(config.model().layers(1).max_pool2d().stride(), 3);
  EXPECT_EQ(config.model().layers(2).layer_norm().epsilon(), 1e-5);
  EXPECT_EQ(config.model().layers(3).linear().weight_initializer(), v1::HE_NORMAL);
  EXPECT_EQ(config.data().idx().standard_deviation(), 1);
  EXPECT_EQ(config.optimizer().schedule().polynomial().power(), 1);
  EXPECT_FALSE(config.consistency().schedule(0).has_learning_rate_scale()) << "it depends on what is switched to";
  v1::JobConfig teacher;
  teacher.mutable_data()->mutable_teacher();
  EXPECT_EQ(Filled(teacher).data().teacher().hidden_units(), 64);
}

TEST(DefaultsTest, FillsTheFractionOfTopKAlone) {
  v1::JobConfig config;
  v1::CompressionConfig* compression = config.mutable_compression();
  compression->mutable_push()->set_codec(v1::TOP_K);
  compression->mutable_pull()->set_codec(v1::BF16);
  compression->add_tensors()->mutable_push()->set_codec(v1::TOP_K);
  const v1::CompressionConfig filled = Filled(config).compression();
  EXPECT_EQ(filled.push().fraction(), 0.01);
  EXPECT_EQ(filled.pull().fraction(), 0);
  EXPECT_EQ(filled.tensors(0).push().fraction(), 0.01);
  EXPECT_FALSE(filled.tensors(0).has_pull());
  compression->mutable_push()->set_fraction(0);
  EXPECT_EQ(Filled(config).compression().push().fraction(), 0);
  // A codec that is not named is no default.
  config.mutable_compression()->mutable_push()->clear_codec();
  EXPECT_EQ(Filled(config).compression().push().codec(), v1::CODEC_UNSPECIFIED);
}

TEST(DefaultsTest, AShardIsTenStepsOfLocalSgd) {
  v1::JobConfig config;
  config.mutable_training()->set_batch_size(32);
  config.mutable_consistency()->set_sync_every(4);
  EXPECT_EQ(Filled(config).data().shard_examples(), 1280);
}

TEST(DefaultsTest, ABatchSizeOutOfRangeDoesNotOverflowTheShard) {
  v1::JobConfig config;
  config.mutable_training()->set_batch_size(INT64_MAX);
  EXPECT_EQ(Filled(config).data().shard_examples(), INT32_MAX);
  config.mutable_training()->set_batch_size(-5);
  EXPECT_EQ(Filled(config).data().shard_examples(), 10);
}

}  // namespace
}  // namespace rubato
