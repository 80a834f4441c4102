#include "cli/capacity/testing/jobs.h"

#include "absl/status/statusor.h"
#include "common/config/load.h"
#include "gtest/gtest.h"

namespace rubato::capacity {
namespace {

constexpr char kJob[] = R"(
name: "small"
seed: 1
cluster { servers: 1 workers: 1 partitions_per_server: 1 }
model {
  input_shape: 64
  layers { name: "fc" linear { units: 16 } }
  loss: SOFTMAX_CROSS_ENTROPY
}
data {
  idx {
    train_images: "/data/images"
    train_labels: "/data/labels"
  }
  dispatch: DYNAMIC
}
optimizer { algorithm: SGD learning_rate: 0.1 }
consistency { mode: SYNC }
training { batch_size: 8 epochs: 1 }
)";

}  // namespace

v1::JobConfig SmallJob(const std::vector<std::string>& overrides) {
  absl::StatusOr<v1::JobConfig> config = ParseJobConfig(kJob, "small", overrides);
  EXPECT_TRUE(config.ok()) << config.status();
  return config.value_or(v1::JobConfig());
}

JobLayout SmallLayout(const std::vector<std::string>& overrides) {
  absl::StatusOr<JobLayout> layout = MakeJobLayout(SmallJob(overrides), /*in_place=*/false);
  EXPECT_TRUE(layout.ok()) << layout.status();
  return layout.value_or(JobLayout());
}

}  // namespace rubato::capacity
