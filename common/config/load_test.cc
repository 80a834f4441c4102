#include "common/config/load.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

namespace rubato {
namespace {

using ::testing::HasSubstr;

constexpr char kJob[] = R"(
name: "job"
cluster { workers: 2 }
model {
  input_shape: 8
  layers { linear { units: 5 } }
  layers { relu {} }
  layers { name: "last" linear { units: 4 } }
  loss: SOFTMAX_CROSS_ENTROPY
}
data { teacher { train_examples: 100 } }
optimizer { algorithm: MOMENTUM learning_rate: 0.1 }
consistency { mode: SYNC }
training { batch_size: 8 epochs: 1 }
)";

std::string WriteFile(const std::string& name, const std::string& text) {
  const std::string path = ::testing::TempDir() + "/" + name;
  std::ofstream(path) << text;
  return path;
}

v1::JobConfig Load(const std::vector<std::string>& overrides = {}) {
  absl::StatusOr<v1::JobConfig> config = ParseJobConfig(kJob, "job.textproto", overrides);
  EXPECT_TRUE(config.ok()) << config.status();
  return config.ok() ? *config : v1::JobConfig();
}

TEST(LoadTest, ReadsAppliesFillsAndChecks) {
  absl::StatusOr<v1::JobConfig> config =
      LoadJobConfig(WriteFile("good.textproto", kJob), {"training.batch_size=16", "optimizer.learning_rate=0.5"});
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->training().batch_size(), 16);
  EXPECT_EQ(config->optimizer().learning_rate(), 0.5);
  EXPECT_EQ(config->optimizer().momentum(), 0.9);
  // Follows the overridden batch size.
  EXPECT_EQ(config->data().shard_examples(), 160);
}

TEST(LoadTest, NamesLayers) {
  const v1::JobConfig config = Load();
  EXPECT_FALSE(config.model().layers(0).name().empty());
  EXPECT_NE(config.model().layers(0).name(), config.model().layers(1).name());
  EXPECT_EQ(config.model().layers(2).name(), "last");
}

TEST(LoadTest, MissingFileIsNotFoundWithItsPath) {
  const absl::Status status = LoadJobConfig("no/such/file.textproto", {}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()), HasSubstr("no/such/file.textproto"));
}

TEST(LoadTest, DirectoryIsAnError) {
  const absl::Status status = LoadJobConfig(::testing::TempDir(), {}).status();
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(std::string(status.message()), HasSubstr(::testing::TempDir()));
}

TEST(LoadTest, EndlessFileIsRefused) {
  EXPECT_THAT(std::string(LoadJobConfig("/dev/zero", {}).status().message()), HasSubstr("/dev/zero: more than"));
}

TEST(LoadTest, AnUnknownFieldNamesTheNearestOnes) {
  const auto error = [](const std::string& text, const std::vector<std::string>& overrides = {}) {
    return std::string(ParseJobConfig(text, "a.textproto", overrides).status().message());
  };
  EXPECT_THAT(error("cluster { wrkers: 2 }"), HasSubstr("no field named \"wrkers\"; did you mean workers?"));
  EXPECT_THAT(error("batch_size: 2"),
              HasSubstr("no field named \"batch_size\"; did you mean training.batch_size or evaluation.batch_size?"));
  EXPECT_THAT(error("model { layers { liner { units: 1 } } }"), HasSubstr("did you mean linear?"));
  EXPECT_THAT(error("cluster { zzzzzzzz: 2 }"), ::testing::Not(HasSubstr("did you mean")));
  EXPECT_THAT(error(kJob, {"training.epoch=2"}),
              HasSubstr("no field \"epoch\" in TrainingConfig; did you mean epochs?"));
}

TEST(LoadTest, SyntaxErrorsHaveLineAndColumn) {
  EXPECT_THAT(std::string(ParseJobConfig("name: \"a\"\ncluster { workers: x }", "a.textproto", {}).status().message()),
              HasSubstr("a.textproto:2:20: "));
  EXPECT_THAT(std::string(ParseJobConfig("cluster {\n  wrkers: 2\n}", "a.textproto", {}).status().message()),
              HasSubstr("a.textproto:2:9: Message type \"rubato.v1.ClusterConfig\" has no field named \"wrkers\""));
}

TEST(LoadTest, TwoPointsInOneScheduleEntryAreASyntaxError) {
  const absl::Status status =
      ParseJobConfig("consistency { schedule { at_step: 1 at_epoch: 2 mode: SYNC } }", "a.textproto", {}).status();
  EXPECT_THAT(std::string(status.message()), HasSubstr("another member of oneof \"when\""));
}

TEST(LoadTest, AWrittenZeroIsNotADefault) {
  const absl::Status status =
      ParseJobConfig(std::string(kJob) + "evaluation { batch_size: 0 }", "a.textproto", {}).status();
  EXPECT_EQ(status.message(), "evaluation.batch_size: value 0; allowed: 1 to 1048576");
}

TEST(LoadTest, BinaryDataIsAnErrorNotACrash) {
  std::string bytes;
  for (int i = 0; i < 4096; ++i) bytes.push_back(static_cast<char>(i * 37));
  EXPECT_EQ(ParseJobConfig(bytes, "a.textproto", {}).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(ConfigTextTest, ReadsBackAsTheSameConfig) {
  const v1::JobConfig config =
      Load({"optimizer.learning_rate=0.1234567890123456789", "optimizer.momentum=0", "compression.push.codec=TOP_K",
            "compression.tensors[0]={tensor: 'last.*' pull {codec: FP16}}"});
  absl::StatusOr<v1::JobConfig> again = ParseJobConfig(ConfigText(config), "text", {});
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->SerializeAsString(), config.SerializeAsString());
  EXPECT_EQ(ConfigFingerprint(*again), ConfigFingerprint(config));
}

TEST(ConfigFingerprintTest, IgnoresWhatMayDifferBetweenMachinesAlone) {
  const uint64_t fingerprint = ConfigFingerprint(Load());
  for (const char* change :
       {"run_directory=elsewhere", "training.device=CPU", "training.device_index=2", "training.gpus=2",
        "training.no_cuda_graphs=true", "training.no_cudnn=true", "training.no_fused_attention=true"}) {
    EXPECT_EQ(ConfigFingerprint(Load({change})), fingerprint) << change;
  }
  // And between the starts of one job.
  for (const char* change :
       {"cluster.servers=2", "cluster.workers=5", "cluster.server_grace_seconds=0", "checkpoint.every_steps=10",
        "checkpoint.every_seconds=0", "checkpoint.keep=9", "checkpoint.directory=elsewhere"}) {
    EXPECT_EQ(ConfigFingerprint(Load({change})), fingerprint) << change;
  }
  for (const char* change :
       {"name=other", "seed=1", "cluster.chunk_bytes=8192", "cluster.lease_seconds=6",
        "optimizer.learning_rate=0.10000000000000002", "model.layers[0].linear.units=6", "cluster.update_log=true",
        "cluster.shared_memory=OFF", "cluster.connections_per_server=2", "training.trace_steps=5",
        "training.precision=TF32", "compression.push.codec=BF16", "consistency.sync_every=2"}) {
    EXPECT_NE(ConfigFingerprint(Load({change})), fingerprint) << change;
  }
}

TEST(ConfigFingerprintTest, ADefaultThatIsWrittenDownChangesNothing) {
  EXPECT_EQ(ConfigFingerprint(Load({"cluster.servers=1", "optimizer.momentum=0.9", "consistency.sync_every=1",
                                    "compression.push.codec=NONE", "cluster.shared_memory=AUTO"})),
            ConfigFingerprint(Load()));
}

TEST(LoadTest, NamesLayersInTheirLists) {
  const absl::StatusOr<v1::JobConfig> config = ParseJobConfig(R"(
    name: "blocks"
    cluster { workers: 1 }
    model {
      input_shape: 8
      layers { residual { layers { linear { units: 8 } } layers { name: "b" relu {} } } }
      layers { linear { units: 4 } }
      loss: SOFTMAX_CROSS_ENTROPY
    }
    data { teacher { train_examples: 100 } }
    optimizer { algorithm: SGD learning_rate: 0.1 }
    consistency { mode: SYNC }
    training { batch_size: 8 epochs: 1 }
  )",
                                                              "blocks", {});
  ASSERT_TRUE(config.ok()) << config.status();
  const v1::ModelConfig& model = config->model();
  EXPECT_EQ(model.layers(0).name(), "residual0");
  EXPECT_EQ(model.layers(0).residual().layers(0).name(), "linear0");
  EXPECT_EQ(model.layers(0).residual().layers(1).name(), "b");
  EXPECT_EQ(model.layers(1).name(), "linear1");
}

}  // namespace
}  // namespace rubato
