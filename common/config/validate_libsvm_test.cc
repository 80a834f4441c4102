#include <gtest/gtest.h>

#include "common/config/testing/good_job.h"

namespace rubato {
namespace {

// Two features, and a table of all indices.
const std::vector<std::string> kLibsvmJob = {
    "data.teacher=",
    "data.libsvm={train_paths: 'a' test_paths: 'b' label_over: 0}",
    "model.input_shape[0]=2",
    "model.layers[0].linear.units=1",
    "model.loss=BINARY_CROSS_ENTROPY",
    "model.tables[0]={name: \"weights\" dimension: 1 keys_per_example: 64 algorithm: FTRL learning_rate: 0.1 combine: "
    "SUM}",
};

std::vector<std::string> WithLibsvm(const std::vector<std::string>& more) {
  std::vector<std::string> overrides = kLibsvmJob;
  overrides.insert(overrides.end(), more.begin(), more.end());
  return overrides;
}

TEST(ValidateLibsvmTest, AcceptsSparseAndDenseModels) {
  EXPECT_EQ(ErrorOf(kLibsvmJob), "");
  EXPECT_EQ(ErrorOf(WithLibsvm({"data.libsvm.first_key=3"})), "");
  EXPECT_EQ(ErrorOf(WithLibsvm({"model.tables=", "model.loss=MEAN_SQUARED_ERROR"})), "");
  EXPECT_EQ(ErrorOf({"data.teacher=", "data.libsvm={train_paths: 'a' test_paths: 'b'}"}), "");
}

TEST(ValidateLibsvmTest, NamesTheFieldThatIsWrong) {
  Check({
      {WithLibsvm({"data.libsvm.train_paths="}), "data.libsvm.train_paths: value empty; allowed: one path or more"},
      {WithLibsvm({"data.libsvm.train_paths[0]="}), "data.libsvm.train_paths[0]: value empty; allowed: a path"},
      {WithLibsvm({"data.libsvm.test_paths="}),
       "data.libsvm.test_paths: value empty; allowed: one path or more, because cluster.evaluators is 1"},
      {WithLibsvm({"data.libsvm.label_over=nan"}), "data.libsvm.label_over: value nan; allowed: a finite number"},
      {WithLibsvm({"data.libsvm.first_key=4"}),
       "data.libsvm.first_key: value 4; allowed: 0 to 3, as the indices before are the features of model.input_shape"},
      {WithLibsvm({"data.libsvm.first_key=1", "model.tables="}),
       "data.libsvm.first_key: value 1; allowed: absent without model.tables"},
      {WithLibsvm({"model.tables[0].combine=MEAN"}),
       "model.tables[0].combine: value MEAN; allowed: SUM, with data.libsvm, whose values the rows are multiplied "
       "with"},
      {WithLibsvm({"model.tables[0].combine="}),
       "model.tables[0].combine: value absent; allowed: SUM, with data.libsvm, whose values the rows are multiplied "
       "with"},
      {WithLibsvm({"model.layers[0].linear.units=2", "model.tables=", "model.loss=MEAN_SQUARED_ERROR"}),
       "model.loss: value MEAN_SQUARED_ERROR; allowed: SOFTMAX_CROSS_ENTROPY, or a last layer with 1 output (it has 2) "
       "with data.libsvm, whose labels are single numbers"},
  });
}

}  // namespace
}  // namespace rubato
