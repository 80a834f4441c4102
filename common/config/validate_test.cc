// Validation as its callers meet it: a good job, one thing made wrong, and the line that comes back.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_split.h"
#include "common/config/load.h"
#include "common/config/testing/good_job.h"

namespace rubato {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(ValidateTest, AcceptsAGoodJob) { EXPECT_EQ(ErrorOf({}), ""); }

TEST(ValidateTest, ChecksNameAndCluster) {
  Check({
      {{"name="}, "name: value \"\"; allowed: 1 to 128 letters, digits, '-' and '_'"},
      {{"name=a/b"}, "name: value \"a/b\"; allowed: 1 to 128 letters, digits, '-' and '_'"},
      {{"name=.."}, "name: value \"..\"; allowed: 1 to 128 letters, digits, '-' and '_'"},
      {{"cluster.workers=0"}, "cluster.workers: value 0; allowed: 1 to 1024"},
      {{"cluster.workers="}, "cluster.workers: value 0; allowed: 1 to 1024"},
      {{"cluster.workers=4294967295"}, "cluster.workers: value 4294967295; allowed: 1 to 1024"},
      {{"cluster.servers=0"}, "cluster.servers: value 0; allowed: 1 to 1024"},
      {{"cluster.evaluators=2"}, "cluster.evaluators: value 2; allowed: 0 to 1"},
      {{"cluster.chunk_bytes=0"},
       "cluster.chunk_bytes: value 0; allowed: 4096 (4 KiB) to 67108864 (64 MiB), a multiple of 64"},
      {{"cluster.chunk_bytes=5000"},
       "cluster.chunk_bytes: value 5000; allowed: 4096 (4 KiB) to 67108864 (64 MiB), a multiple of 64"},
      {{"cluster.chunk_bytes=18446744073709551552"},
       "cluster.chunk_bytes: value 18446744073709551552; allowed: 4096 (4 KiB) to 67108864 (64 MiB), a multiple of 64"},
      {{"cluster.message_bytes=1"}, "cluster.message_bytes: value 1; allowed: 4096 (4 KiB) to 67108864 (64 MiB)"},
      {{"cluster.partitions_per_server=65"}, "cluster.partitions_per_server: value 65; allowed: 1 to 64"},
      {{"cluster.lease_seconds=0.1"}, "cluster.lease_seconds: value 0.1; allowed: 0.2 to 3600 (1 h)"},
      {{"cluster.lease_seconds=nan"}, "cluster.lease_seconds: value nan; allowed: 0.2 to 3600 (1 h)"},
      {{"cluster.start_timeout_seconds=1e999"}, "cluster.start_timeout_seconds: value inf; allowed: 1 to 86400 (24 h)"},
      {{"cluster.wait_timeout_seconds=-1"}, "cluster.wait_timeout_seconds: value -1; allowed: 1 to 86400 (24 h)"},
      {{"cluster.shared_memory=7"}, "cluster.shared_memory: value 7; allowed: AUTO, OFF"},
      {{"cluster.shared_memory=SHARED_MEMORY_UNSPECIFIED"}, "cluster.shared_memory: value 0; allowed: AUTO, OFF"},
      {{"cluster.connections_per_server=0"}, "cluster.connections_per_server: value 0; allowed: 1 to 16"},
      {{"cluster.connections_per_server=17"}, "cluster.connections_per_server: value 17; allowed: 1 to 16"},
  });
}

TEST(ValidateTest, ChecksCheckpointsAndTheGraceOfServers) {
  Check({
      {{"cluster.server_grace_seconds=-1"}, "cluster.server_grace_seconds: value -1; allowed: 0 to 86400 (24 h)"},
      {{"cluster.server_grace_seconds=86401"}, "cluster.server_grace_seconds: value 86401; allowed: 0 to 86400 (24 h)"},
      {{"cluster.server_grace_seconds=nan"}, "cluster.server_grace_seconds: value nan; allowed: 0 to 86400 (24 h)"},
      {{"checkpoint.every_steps=-1"}, "checkpoint.every_steps: value -1; allowed: 0 to 9007199254740992"},
      {{"checkpoint.every_seconds=-0.5"}, "checkpoint.every_seconds: value -0.5; allowed: 0 to 2592000 (30 days)"},
      {{"checkpoint.every_seconds=2592001"},
       "checkpoint.every_seconds: value 2592001; allowed: 0 to 2592000 (30 days)"},
      {{"checkpoint.keep=0"}, "checkpoint.keep: value 0; allowed: 1 to 1000"},
      {{"checkpoint.keep=1001"}, "checkpoint.keep: value 1001; allowed: 1 to 1000"},
      {{"checkpoint.copies=0"}, "checkpoint.copies: value 0; allowed: 1 to 1 (cluster.servers)"},
      {{"cluster.servers=3", "checkpoint.copies=4"}, "checkpoint.copies: value 4; allowed: 1 to 3 (cluster.servers)"},
      {{"cluster.server_grace_seconds=0", "checkpoint={every_steps: 1 every_seconds: 0 keep: 1000 directory: 'a/b'}"},
       ""},
  });
}

TEST(ValidateTest, ChecksCompression) {
  constexpr char kPull[] =
      "allowed: NONE, BF16, FP16, INT8; a pull carries the weights themselves, and what TOP_K and ONE_BIT leave out of "
      "them could not be made up for later";
  const std::string top_k = std::string("compression.pull.codec: value TOP_K; ") + kPull;
  const std::string one_bit = std::string("compression.tensors[0].pull.codec: value ONE_BIT; ") + kPull;
  Check({
      {{"compression.push.codec=9"},
       "compression.push.codec: value 9; allowed: NONE, BF16, FP16, INT8, TOP_K, ONE_BIT"},
      {{"compression.push={}"},
       "compression.push.codec: value CODEC_UNSPECIFIED; allowed: NONE, BF16, FP16, INT8, TOP_K, ONE_BIT"},
      {{"compression.pull.codec=TOP_K"}, top_k.c_str()},
      {{"compression.tensors[0]={tensor: '*' pull {codec: ONE_BIT}}"}, one_bit.c_str()},
      {{"compression.off_at_first=true"},
       "compression.off_at_first: value true; allowed: absent if compression.push encodes nothing"},
      {{"compression.off_at_first=true", "compression.push.codec=INT8"}, ""},
      {{"consistency.schedule[0]={at_step: 5 mode: ASYNC compress: true}"},
       "consistency.schedule[0].compress: value true; allowed: absent if compression.push encodes nothing"},
      {{"compression.push={codec: TOP_K fraction: 0}"},
       "compression.push.fraction: value 0; allowed: more than 0, 1 or less"},
      {{"compression.push={codec: TOP_K fraction: 1.5}"},
       "compression.push.fraction: value 1.5; allowed: more than 0, 1 or less"},
      {{"compression.push={codec: TOP_K fraction: nan}"},
       "compression.push.fraction: value nan; allowed: more than 0, 1 or less"},
      {{"compression.push={codec: BF16 fraction: 0.5}"},
       "compression.push.fraction: value 0.5; allowed: absent unless the codec is TOP_K"},
      {{"compression.tensors[0]={tensor: 'other.*' push {codec: INT8}}"},
       "compression.tensors[0].tensor: value \"other.*\"; allowed: a tensor of the model (linear0.weight, "
       "linear0.bias), "
       "or the beginning of names followed by '*'"},
      {{"compression.tensors[0]={push {codec: INT8}}"},
       "compression.tensors[0].tensor: value \"\"; allowed: a tensor of the model (linear0.weight, linear0.bias), or "
       "the beginning of names followed by '*'"},
  });
  EXPECT_EQ(ErrorOf({"compression.push={codec: TOP_K}", "compression.pull.codec=INT8",
                     "compression.tensors[0]={tensor: 'linear0.bias' push {codec: NONE}}"}),
            "");
}

TEST(ValidateTest, ChecksTrainingAndEvaluation) {
  Check({
      {{"training.batch_size=0"}, "training.batch_size: value 0; allowed: 1 to 1048576"},
      {{"training.batch_size=9223372036854775807"},
       "training.batch_size: value 9223372036854775807; allowed: 1 to 1048576"},
      {{"training.epochs="}, "training.epochs: value 0; allowed: 1 or more, unless training.max_steps is 1 or more"},
      {{"training.epochs=-1"}, "training.epochs: value -1; allowed: 0 to 2147483647"},
      {{"training.max_steps=-1"}, "training.max_steps: value -1; allowed: 0 to 9007199254740992"},
      {{"training.micro_batches=9"}, "training.micro_batches: value 9; allowed: 1 to training.batch_size, 8"},
      {{"training.micro_batches=0"}, "training.micro_batches: value 0; allowed: 1 to training.batch_size, 8"},
      {{"training.compute_threads=1025"}, "training.compute_threads: value 1025; allowed: 1 to 1024"},
      {{"training.trace_steps=10001"}, "training.trace_steps: value 10001; allowed: 0 to 10000"},
      {{"training.trace_after_steps=-1"}, "training.trace_after_steps: value -1; allowed: 0 to 9007199254740992"},
      {{"training.device_index=1024"}, "training.device_index: value 1024; allowed: 0 to 1023"},
      {{"training.gpus=0"}, "training.gpus: value 0; allowed: 1 to 8"},
      {{"training.gpus=3", "training.micro_batches=4"}, "training.gpus: value 3; allowed: 1 to 2"},
      {{"training.batch_size=1000", "training.gpus=65"}, "training.gpus: value 65; allowed: 1 to 64"},
      {{"training.device=CPU", "training.gpus=2"}, "training.gpus: value 2; allowed: 1 if training.device is CPU"},
      {{"consistency.sync_every=2", "training.gpus=2"},
       "training.gpus: value 2; allowed: 1 if consistency.sync_every is 2"},
      {{"training.device=DEVICE_UNSPECIFIED"}, "training.device: value 0; allowed: AUTO, CPU, CUDA"},
      {{"training.precision=PRECISION_UNSPECIFIED"}, "training.precision: value 0; allowed: FP32, TF32, BF16, FP16"},
      {{"training.device=CPU", "training.precision=BF16"},
       "training.precision: value BF16; allowed: FP32 if training.device is CPU"},
      {{"training.loss_scale.initial=8"},
       "training.loss_scale: value present; allowed: absent unless training.precision is FP16"},
      {{"training.precision=FP16", "training.loss_scale.initial=1000"},
       "training.loss_scale.initial: value 1000; allowed: a power of two, 1 to 16777216"},
      {{"training.precision=FP16", "training.loss_scale.growth_steps=0"},
       "training.loss_scale.growth_steps: value 0; allowed: 1 to 2147483647"},
      {{"training.step_timeout_seconds=0.5"}, "training.step_timeout_seconds: value 0.5; allowed: 1 to 86400 (24 h)"},
      {{"evaluation.every_epochs=0"}, "evaluation.every_epochs: value 0; allowed: a number > 0"},
      {{"evaluation.batch_size=-1"}, "evaluation.batch_size: value -1; allowed: 1 to 1048576"},
      {{"evaluation.target_accuracy=1.5"}, "evaluation.target_accuracy: value 1.5; allowed: 0 to 1 (0: no target)"},
      {{"evaluation.target_accuracy=0.9", "cluster.evaluators=0"},
       "evaluation.target_accuracy: value 0.9; allowed: 0 if cluster.evaluators is 0"},
      {{"evaluation.target_accuracy=0.9", "model.loss=MEAN_SQUARED_ERROR"},
       "evaluation.target_accuracy: value 0.9; allowed: 0 if model.loss is MEAN_SQUARED_ERROR"},
      {{"evaluation.recall_at=11"}, "evaluation.recall_at: value 11; allowed: 0 to 4"},
      {{"evaluation.recall_at=-1"}, "evaluation.recall_at: value -1; allowed: 0 to 4"},
      {{"evaluation.recall_at=2", "model.loss=MEAN_SQUARED_ERROR"},
       "evaluation.recall_at: value 2; allowed: 0 unless model.loss is SOFTMAX_CROSS_ENTROPY"},
      {{"evaluation.target_auc=-1"}, "evaluation.target_auc: value -1; allowed: 0 to 1 (0: no target)"},
      {{"evaluation.target_auc=0.7"},
       "evaluation.target_auc: value 0.7; allowed: 0 unless there are two classes: BINARY_CROSS_ENTROPY, or "
       "SOFTMAX_CROSS_ENTROPY over 2"},
      {{"evaluation.target_auc=0.7", "evaluation.target_accuracy=0.9", "model.layers[0].linear.units=2"},
       "evaluation.target_auc: value 0.7; allowed: 0 with evaluation.target_accuracy"},
      {{"evaluation.target_rmse=nan", "model.loss=MEAN_SQUARED_ERROR"},
       "evaluation.target_rmse: value nan; allowed: a number >= 0 (0: no target)"},
      {{"evaluation.target_rmse=1.5"},
       "evaluation.target_rmse: value 1.5; allowed: 0 unless model.loss is MEAN_SQUARED_ERROR"},
  });
  EXPECT_EQ(ErrorOf({"evaluation.target_auc=0.7", "model.layers[0].linear.units=2"}), "");
  EXPECT_EQ(ErrorOf({"evaluation.target_rmse=1.5", "model.loss=MEAN_SQUARED_ERROR"}), "");
  EXPECT_EQ(ErrorOf({"training.epochs=", "training.max_steps=5"}), "");
  EXPECT_EQ(ErrorOf({"training.precision=FP16", "training.loss_scale.initial=1024"}), "");
}

TEST(ValidateTest, ChecksData) {
  Check({
      {{"data.teacher="},
       "data: value without a source; allowed: one of data.idx, data.csv, data.teacher, data.cifar, data.text, "
       "data.criteo, data.clicks, data.columns, data.libsvm"},
      {{"data.teacher=", "model.loss=MEAN_SQUARED_ERROR"},
       "data: value without a source; allowed: one of data.idx, data.csv, data.teacher, data.cifar, data.text, "
       "data.criteo, data.clicks, data.columns, data.libsvm"},
      {{"data.teacher.train_examples=0"}, "data.teacher.train_examples: value 0; allowed: 1 to 2147483647"},
      {{"data.teacher.test_examples=0"}, "data.teacher.test_examples: value 0; allowed: 1 to 2147483647"},
      {{"data.teacher.hidden_units=0"}, "data.teacher.hidden_units: value 0; allowed: 1 to 65536"},
      {{"data.teacher.noise=-inf"}, "data.teacher.noise: value -inf; allowed: a number >= 0"},
      {{"data.teacher.hidden_units=65536", "model.input_shape[0]=1000000"},
       "data.teacher.hidden_units: value 65536; allowed: 1 to 268 with the model's 1000004 inputs and outputs (at most "
       "2^28 weights)"},
      {{"data.dispatch=DISPATCH_UNSPECIFIED"}, "data.dispatch: value 0; allowed: DYNAMIC, STATIC"},
      {{"data.shard_examples=0"}, "data.shard_examples: value 0; allowed: 1 to 2147483647"},
      {{"data.prefetch_batches=65"}, "data.prefetch_batches: value 65; allowed: 1 to 64"},
      {{"data.prefetch_threads=0"}, "data.prefetch_threads: value 0; allowed: 1 to 64"},
      {{"data.memory_bytes=281474976710657"},
       "data.memory_bytes: value 281474976710657; allowed: 0 to 281474976710656 (2^48)"},
      {{"data.csv={train_path: 'a'}"},
       "data.csv.test_path: value empty; allowed: a path, because cluster.evaluators is 1"},
      {{"data.csv={train_path: 'a' test_path: 'b' label_column: 9}"},
       "data.csv.label_column: value 9; allowed: 0 to 8"},
      {{"data.csv={train_path: 'a' test_path: 'b'}", "model.loss=MEAN_SQUARED_ERROR"},
       "model.loss: value MEAN_SQUARED_ERROR; allowed: SOFTMAX_CROSS_ENTROPY, or a last layer with 1 output (it has 4) "
       "with data.csv, whose labels are single numbers"},
      {{"data.idx={train_images: 'a' train_labels: 'b' test_images: 'c'}"},
       "data.idx.test_labels: value empty; allowed: a path, because data.idx.test_images is set"},
      {{"data.idx={train_images: 'a' train_labels: 'b' test_labels: 'c'}", "cluster.evaluators=0"},
       "data.idx.test_images: value empty; allowed: a path, because data.idx.test_labels is set"},
      {{"data.idx={train_images: 'a'}", "cluster.evaluators=0"}, "data.idx.train_labels: value empty; allowed: a path"},
      {{"data.idx={train_images: 'a' train_labels: 'b' standard_deviation: 0 mean: nan}", "cluster.evaluators=0"},
       "data.idx.mean: value nan; allowed: a finite number\n"
       "data.idx.standard_deviation: value 0; allowed: a number > 0"},
  });
  EXPECT_EQ(ErrorOf({"data.idx={train_images: 'a' train_labels: 'b'}", "cluster.evaluators=0"}), "");
}

TEST(ValidateTest, ChecksCifarAndText) {
  const char* language_model =
      "model={input_shape: 4 layers { embedding { vocabulary: 256 width: 2 } } layers { linear { units: 256 } } "
      "loss: SOFTMAX_CROSS_ENTROPY}";
  Check({
      {{"data.cifar={train_paths: 'a'}"},
       "data.cifar.test_paths: value empty; allowed: one path or more, because cluster.evaluators is 1"},
      {{"data.cifar={test_paths: ['a', '']}"},
       "data.cifar.train_paths: value empty; allowed: one path or more\n"
       "data.cifar.test_paths[1]: value empty; allowed: a path"},
      {{"data.cifar={train_paths: 'a' test_paths: 'b' mean: [0, 1] standard_deviation: [1, 0, 1]}"},
       "data.cifar.mean: value 2 numbers; allowed: 3 numbers, for red, green and blue, or 1 for all\n"
       "data.cifar.standard_deviation[1]: value 0; allowed: a number > 0"},
      {{"data.text={path: 'a'}"},
       "model.layers: value a vocabulary of 0; allowed: an embedding of at least 256 tokens first, with data.text\n"
       "model.layers: value an output of 4; allowed: SOFTMAX_CROSS_ENTROPY over 8 positions of at least 256 classes, "
       "with data.text"},
      {{"data.text={test_fraction: 0}", language_model},
       "data.text.path: value empty; allowed: a path\n"
       "data.text.test_fraction: value 0; allowed: over 0 to under 1, because cluster.evaluators is 1"},
      {{language_model},
       "model.layers: value an output of 4x256; allowed: an output of one logit per class, unless the source is "
       "data.text"},
  });
  EXPECT_EQ(ErrorOf({"data.cifar={train_paths: 'a' test_paths: 'b'}"}), "");
  EXPECT_EQ(ErrorOf({"data.text={path: 'a'}", language_model}), "");
  EXPECT_EQ(ErrorOf({"data.text={path: 'a' test_fraction: 0}", language_model, "cluster.evaluators=0"}), "");
}

// A job with a table, its keys and two classes.
const std::vector<std::string> kTableJob = {
    "data.teacher=", "data.clicks={train_examples: 100 test_examples: 10}", "model.layers[0].linear.units=2",
    "model.tables[0]={name: \"users\" dimension: 8 keys_per_example: 2 algorithm: ADAGRAD learning_rate: 0.1}"};

std::vector<std::string> WithTable(const std::vector<std::string>& more) {
  std::vector<std::string> overrides = kTableJob;
  overrides.insert(overrides.end(), more.begin(), more.end());
  return overrides;
}

TEST(ValidateTest, ChecksTables) {
  EXPECT_EQ(ErrorOf(kTableJob), "");
  EXPECT_EQ(ErrorOf(WithTable({"model.layers[0].linear.units=1", "model.loss=BINARY_CROSS_ENTROPY"})), "");
  Check({
      {WithTable({"model.tables[0].dimension=0"}), "model.tables[0].dimension: value 0; allowed: 1 to 4096"},
      {WithTable({"model.tables[0].keys_per_example=5000"}),
       "model.tables[0].keys_per_example: value 5000; allowed: 1 to 4096"},
      {WithTable({"model.tables[0].algorithm=ALGORITHM_UNSPECIFIED"}),
       "model.tables[0].algorithm: value 0; allowed: SGD, ADAGRAD, ROW_WISE_ADAGRAD, LAZY_ADAM, FTRL"},
      {WithTable({"model.tables[0].learning_rate=0"}), "model.tables[0].learning_rate: value 0; allowed: a number > 0"},
      {WithTable({"model.tables[0].shards=48"}), "model.tables[0].shards: value 48; allowed: a power of two, 1 to 256"},
      {WithTable({"model.tables[0].memory_bytes=5"}),
       "model.tables[0].memory_bytes: value 5; allowed: 1048576 (1 MiB) to 68719476736 (64 GiB)"},
      {WithTable({"model.tables[0].push=INT8"}), "model.tables[0].push: value INT8; allowed: NONE, BF16"},
      {WithTable({"model.tables[0].pull=TOP_K"}), "model.tables[0].pull: value TOP_K; allowed: NONE, BF16"},
      {WithTable({"model.tables[0].admit_after=0"}), "model.tables[0].admit_after: value 0; allowed: 1 to 255"},
      {WithTable({"model.tables[0].admission_counters=16384"}),
       "model.tables[0].admission_counters: value 16384; allowed: absent unless admit_after is over 1"},
      {WithTable({"model.tables[0].admit_after=2", "model.tables[0].admission_counters=20000"}),
       "model.tables[0].admission_counters: value 20000; allowed: a power of two, 16384 to 4294967296"},
      {WithTable({"model.tables[0].expire_after_steps=4294967296"}),
       "model.tables[0].expire_after_steps: value 4294967296; allowed: 0 (never) to 2147483648"},
      {WithTable({"model.tables[0].most_rows=255"}),
       "model.tables[0].most_rows: value 255; allowed: 0 (no limit), or 256 or more"},
      {WithTable({"model.tables[0].combine=COMBINE_UNSPECIFIED"}),
       "model.tables[0].combine: value 0; allowed: SUM, MEAN, SQRT_N, or absent"},
      {WithTable({"model.tables[0].beta1=0.5"}),
       "model.tables[0].beta1: value 0.5; allowed: absent unless the algorithm is LAZY_ADAM"},
      {WithTable({"model.tables[0].l1=0.5"}),
       "model.tables[0].l1: value 0.5; allowed: absent unless the algorithm is FTRL"},
      {WithTable({"consistency.sync_every=4"}),
       "consistency.sync_every: value consistency.sync_every is 4; allowed: 1, and no plan with another, in a job with "
       "model.tables"},
      {WithTable({"training.clip_norm=1"}), "training.clip_norm: value 1; allowed: 0 in a job with model.tables"},
      {WithTable({"training.micro_batches=2"}),
       "training.micro_batches: value 2; allowed: 1 in a job with model.tables"},
      {WithTable({"data.clicks=", "data.teacher={train_examples: 100 test_examples: 10}"}),
       "model.tables: value present; allowed: absent unless the source is data.criteo, data.clicks, data.columns or "
       "data.libsvm"},
      {WithTable({"model.layers[0].linear.units=3"}),
       "model.layers: value an output of 3; allowed: BINARY_CROSS_ENTROPY, or SOFTMAX_CROSS_ENTROPY over 2 classes, "
       "with data.criteo or data.clicks"},
      {WithTable({"data.clicks.exponent=0"}), "data.clicks.exponent: value 0; allowed: over 0 to 4"},
      {WithTable({"data.clicks.keys=0"}), "data.clicks.keys: value 0; allowed: 1 to 1099511627776"},
  });
  EXPECT_EQ(ErrorOf({"data.teacher=", "data.clicks={train_examples: 100 test_examples: 10}",
                     "model.layers[0].linear.units=2"}),
            "model.tables: value empty; allowed: one table or more, for the keys of data.criteo or data.clicks");
}

TEST(ValidateTest, ChecksAugmentation) {
  const std::string cifar = "data.cifar={train_paths: 'a' test_paths: 'b'}";
  Check({
      {{"data.augmentation={horizontal_flip: true}"},
       "data.augmentation: value present; allowed: absent unless the source is data.idx or data.cifar\n"
       "model.input_shape: value 8; allowed: channels, height and width, with data.augmentation"},
      {{"data.augmentation={crop_padding: 29}", cifar, "model.input_shape[0]=3", "model.input_shape[1]=32",
        "model.input_shape[2]=28"},
       "data.augmentation.crop_padding: value 29; allowed: 0 to 28"},
  });
  EXPECT_EQ(ErrorOf({"data.augmentation={crop_padding: 4}", cifar, "model.input_shape[0]=3", "model.input_shape[1]=32",
                     "model.input_shape[2]=32"}),
            "");
}

TEST(ValidateTest, ChecksTheNormThatGradientsAreClippedTo) {
  EXPECT_EQ(ErrorOf({"training.clip_norm=0.5"}), "");
  EXPECT_EQ(ErrorOf({"training.clip_norm=-1"}),
            "training.clip_norm: value -1; allowed: 1e-30 to 1e30, or 0 for no clipping");
}

TEST(ValidateTest, ChecksLayersInsideOfBlocks) {
  const std::string conv = "conv2d { filters: 1 kernel: 1 stride: 0 }";
  EXPECT_EQ(ErrorOf({"model.layers[0]={residual { layers { " + conv +
                         " } layers { linear { units: 0 } } projection { "
                         "stride: 0 } } }",
                     "model.input_shape[1]=8", "model.input_shape[2]=8"}),
            "model.layers[0].residual.layers[0].conv2d.stride: value 0; allowed: 1 to 64\n"
            "model.layers[0].residual.layers[1].linear.units: value 0; allowed: 1 to 1048576\n"
            "model.layers[0].residual.projection.stride: value 0; allowed: 1 to 64");
}

TEST(ValidateTest, ChecksOptimizer) {
  Check({
      {{"optimizer.algorithm="},
       "optimizer.algorithm: value 0; allowed: SGD, MOMENTUM, NESTEROV, ADAGRAD, RMSPROP, ADAM, ADAMW, LARS, LAMB"},
      {{"optimizer.learning_rate=0"}, "optimizer.learning_rate: value 0; allowed: a number > 0"},
      {{"optimizer.learning_rate=nan"}, "optimizer.learning_rate: value nan; allowed: a number > 0"},
      {{"optimizer.momentum=0.9"},
       "optimizer.momentum: value 0.9; allowed: absent unless optimizer.algorithm is MOMENTUM, NESTEROV or LARS"},
      {{"optimizer.algorithm=ADAM", "optimizer.trust_coefficient=0.1"},
       "optimizer.trust_coefficient: value 0.1; allowed: absent unless optimizer.algorithm is LARS"},
      {{"optimizer.algorithm=LARS", "optimizer.trust_coefficient=0"},
       "optimizer.trust_coefficient: value 0; allowed: a number > 0"},
      {{"optimizer.algorithm=LAMB", "consistency.sync_every=2"},
       "optimizer.algorithm: value LAMB; allowed: another one if consistency.sync_every is 2"},
      {{"optimizer.algorithm=LAMB", "consistency.mode=ASYNC", "consistency.compensation={gap_aware {}}"},
       "optimizer.algorithm: value LAMB; allowed: another one if consistency.compensation changes gradients (dc_asgd, "
       "gap_aware)"},
      {{"optimizer.algorithm=LARS", "cluster.chunk_bytes=4096", "model.layers[0].linear.units=200"},
       "cluster.chunk_bytes: value 4096; allowed: 6400 or more if optimizer.algorithm is LARS, as linear0.weight has "
       "to "
       "be one chunk"},
      {{"optimizer.algorithm=LARS", "model.input_shape[0]=1000000", "model.layers[0].linear.units=20"},
       "optimizer.algorithm: value LARS; allowed: another one if a tensor is larger than 64 MiB: linear0.weight"},
      {{"optimizer.algorithm=MOMENTUM", "optimizer.momentum=1"},
       "optimizer.momentum: value 1; allowed: 0 or more, less than 1"},
      {{"optimizer.algorithm=ADAM", "optimizer.beta2=-0.5"},
       "optimizer.beta2: value -0.5; allowed: 0 or more, less than 1"},
      {{"optimizer.algorithm=ADAM", "optimizer.epsilon=0"}, "optimizer.epsilon: value 0; allowed: a number > 0"},
      {{"optimizer.weight_decay=-1"}, "optimizer.weight_decay: value -1; allowed: a number >= 0"},
      {{"optimizer.schedule.warmup=-1"}, "optimizer.schedule.warmup: value -1; allowed: a number >= 0"},
      {{"optimizer.schedule.step.interval=1"},
       "optimizer.schedule.step.factor: value 0; allowed: more than 0, 1 or less"},
      {{"optimizer.schedule.cosine.final_factor=0.1"},
       "optimizer.schedule.cosine.length: value 0; allowed: a number > 0"},
      {{"optimizer.schedule.polynomial={length: 1 power: 0}"},
       "optimizer.schedule.polynomial.power: value 0; allowed: a number > 0"},
      {{"optimizer.schedule.unit=7"}, "optimizer.schedule.unit: value 7; allowed: EPOCHS, STEPS"},
  });
}

TEST(ValidateTest, ChecksTheModelThroughItsSpec) {
  EXPECT_THAT(ErrorOf({"model.layers[0].linear.units=0"}), HasSubstr("model.layers[0].linear.units: "));
  EXPECT_THAT(ErrorOf({"model.layers[0].name=a/b"}), HasSubstr("model.layers[0].name: "));
  EXPECT_THAT(ErrorOf({"model.layers="}), HasSubstr("model.layers"));
  EXPECT_THAT(ErrorOf({"model.layers[1].layer_norm={epsilon: 0}"}),
              HasSubstr("model.layers[1].layer_norm.epsilon: value 0; allowed: a number > 0"));
  EXPECT_THAT(ErrorOf({"model.layers[0].conv2d={filters: 1 kernel: 1 stride: 0}"}),
              HasSubstr("model.layers[0].conv2d.stride: value 0; allowed: 1 to 64"));
}

TEST(ValidateTest, ChecksObservability) {
  Check({
      {{"observability.log_format=LOG_FORMAT_UNSPECIFIED"}, "observability.log_format: value 0; allowed: TEXT, JSON"},
      {{"observability.histogram_every_steps=-1"},
       "observability.histogram_every_steps: value -1; allowed: 0 to 9007199254740992"},
      {{"observability.histogram_every_steps=100", "observability.log_format=JSON"}, ""},
      {{"observability.page_address=8080"},
       "observability.page_address: value \"8080\"; allowed: \"host:port\" with a port from 0 to 65535"},
      {{"observability.page_address=127.0.0.1:0"}, ""},
  });
}

TEST(ValidateTest, ReportsAllErrorsOfAllPartsAtOnce) {
  const std::vector<std::string> lines = absl::StrSplit(
      ErrorOf({"name=", "cluster.workers=0", "model.layers[0].linear.units=0", "data.prefetch_batches=99",
               "optimizer.learning_rate=-1", "consistency.mode=", "training.batch_size=0", "evaluation.batch_size=0"}),
      '\n');
  EXPECT_THAT(lines, ElementsAre(HasSubstr("name:"), HasSubstr("cluster.workers:"), HasSubstr("model.layers[0]"),
                                 HasSubstr("data.prefetch_batches:"), HasSubstr("optimizer.learning_rate:"),
                                 HasSubstr("consistency.mode:"), HasSubstr("training.batch_size:"),
                                 HasSubstr("evaluation.batch_size:")));
}

TEST(ValidateTest, AnEmptyJobIsAllErrorsAndNoCrash) {
  const absl::Status status = ParseJobConfig("", "empty.textproto", {}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  for (const char* path : {"name", "cluster.workers", "model.", "data", "optimizer.algorithm", "consistency.mode",
                           "training.batch_size"}) {
    EXPECT_THAT(std::string(status.message()), HasSubstr(path));
  }
}

constexpr char kClientJob[] = R"(
  name: "clients"
  cluster { workers: 2 }
  model {
    manifest {
      groups: 2
      tensors { name: "weight" shape: 4 shape: 2 }
      tensors { name: "bias" group: 1 }
    }
  }
  data { client {} }
  optimizer { algorithm: SGD }
  consistency { mode: SYNC }
)";

std::string ClientErrorOf(const std::vector<std::string>& overrides) {
  return std::string(ParseJobConfig(kClientJob, "clients.textproto", overrides).status().message());
}

TEST(ValidateTest, AClientsJobNeedsNoBatchesAndNoEnd) {
  EXPECT_EQ(ClientErrorOf({}), "");
  EXPECT_EQ(ClientErrorOf({"training.max_steps=5", "training.batch_size=8"}), "");
  EXPECT_EQ(ClientErrorOf({"data.client={train_examples: 5}", "training.epochs=2"}), "");
}

TEST(ValidateTest, ChecksWhatAClientsJobMayHave) {
  constexpr char kWhere[] = " in a client's job (model.manifest, or no model)";
  EXPECT_EQ(ClientErrorOf({"cluster.evaluators=1"}), std::string("cluster.evaluators: value 1; allowed: 0") + kWhere);
  EXPECT_EQ(ClientErrorOf({"consistency.sync_every=2"}),
            std::string("consistency.sync_every: value 2; allowed: 1") + kWhere);
  EXPECT_EQ(ClientErrorOf({"training.clip_norm=2"}),
            std::string("training.clip_norm: value 2; allowed: 0, as clients clip themselves,") + kWhere);
  EXPECT_EQ(ClientErrorOf({"consistency.compensation={dc_asgd {}}"}), "");
  EXPECT_EQ(
      ClientErrorOf({"consistency.compensation={delayed_nesterov {period: 2}}"}),
      std::string("consistency.compensation: value delayed_nesterov; allowed: another one, as clients' pushes say "
                  "how they are applied,") +
          kWhere);
  EXPECT_EQ(ClientErrorOf({"consistency.compensation={dc_asgd {}}", "optimizer={algorithm: MEAN}"}),
            "consistency.compensation: value given; allowed: absent if optimizer.algorithm is MEAN: in SYNC no "
            "gradient is stale");
  EXPECT_EQ(ClientErrorOf({"data={teacher {train_examples: 5}}", "training.epochs=1"}),
            std::string("data: value without client; allowed: data.client") + kWhere);
  EXPECT_EQ(ClientErrorOf({"model.loss=MEAN_SQUARED_ERROR"}),
            "model.loss: value present; allowed: absent with model.manifest, whose model the clients compute");
  EXPECT_EQ(ClientErrorOf({"optimizer.learning_rate=-1"}), "optimizer.learning_rate: value -1; allowed: a number >= 0");
  EXPECT_EQ(ClientErrorOf({"training.batch_size=-1"}), "training.batch_size: value -1; allowed: 0 to 1048576");
}

TEST(ValidateTest, ChecksTheDataOfClients) {
  EXPECT_EQ(ClientErrorOf({"data.dispatch=STATIC", "training.epochs=1"}),
            "data.client.train_examples: value 0; allowed: 1 to 1099511627776\n"
            "data.dispatch: value STATIC; allowed: OWN, DYNAMIC with data.client");
  EXPECT_EQ(ClientErrorOf({"data.dispatch=DYNAMIC", "training.epochs=1"}),
            "data.client.train_examples: value 0; allowed: 1 to 1099511627776");
  EXPECT_EQ(ClientErrorOf({"data.dispatch=OWN", "data.client={train_examples: 5}"}),
            "data.client.train_examples: value 5; allowed: absent if data.dispatch is OWN");
  EXPECT_EQ(ClientErrorOf({"training.epochs=1"}), "training.epochs: value 1; allowed: absent if data.dispatch is OWN");
  EXPECT_EQ(ClientErrorOf({"data.shard_examples=7"}),
            "data.shard_examples: value 7; allowed: absent if data.dispatch is OWN");
}

TEST(ValidateTest, WhatIsOfClientsAloneIsRefusedElsewhere) {
  Check({
      {{"optimizer.algorithm=MEAN"},
       "optimizer.algorithm: value MEAN; allowed: another one, unless the model is a model.manifest"},
      {{"data={client {train_examples: 5}}", "cluster.evaluators=0"},
       "data.client: value present; allowed: absent unless the model is a model.manifest"},
      {{"data.dispatch=OWN"},
       "data.dispatch: value OWN; allowed: DYNAMIC, STATIC\n"
       "training.epochs: value 1; allowed: absent if data.dispatch is OWN"},
  });
}

}  // namespace
}  // namespace rubato
