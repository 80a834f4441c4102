#ifndef RUBATO_COMMON_CONFIG_TESTING_GOOD_JOB_H_
#define RUBATO_COMMON_CONFIG_TESTING_GOOD_JOB_H_

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "common/config/load.h"

// A good job, of which tests make one thing wrong.

namespace rubato {

inline constexpr char kGoodJob[] = R"(
  name: "good"
  cluster { workers: 2 evaluators: 1 }
  model {
    input_shape: 8
    layers { linear { units: 4 } }
    loss: SOFTMAX_CROSS_ENTROPY
  }
  data { teacher { train_examples: 100 test_examples: 10 } }
  optimizer { algorithm: SGD learning_rate: 0.1 }
  consistency { mode: SYNC }
  training { batch_size: 8 epochs: 1 }
)";

// What is wrong with it after these overrides; empty: nothing.
inline std::string ErrorOf(const std::vector<std::string>& overrides) {
  return std::string(ParseJobConfig(kGoodJob, "good.textproto", overrides).status().message());
}

// A thing made wrong, and the message that comes back.
struct Case {
  std::vector<std::string> overrides;
  // The whole message.
  const char* message;
};

inline void Check(const std::vector<Case>& cases) {
  for (const Case& one : cases) EXPECT_EQ(ErrorOf(one.overrides), one.message) << one.overrides[0];
}

}  // namespace rubato

#endif  // RUBATO_COMMON_CONFIG_TESTING_GOOD_JOB_H_
