#include "client/library/model_check.h"

#include <gtest/gtest.h>

#include <map>

#include "absl/strings/str_cat.h"
#include "common/optimizer_traits.h"

namespace rubato::client {
namespace {

class ModelCheckTest : public ::testing::Test {
 protected:
  std::string Check() { return ReadModel(given_, &model_); }

  int64_t shape_[2] = {3, 2};
  rubato_tensor tensors_[2] = {{"weight", shape_, 2, 1}, {"bias", nullptr, 0, 0}};
  rubato_hyperparameters groups_[2] = {{.learning_rate = 0.1, .momentum = 0.9}, {.learning_rate = 0.2}};
  rubato_model given_ = {.struct_bytes = sizeof(rubato_model),
                         .tensors = tensors_,
                         .tensor_count = 2,
                         .groups = groups_,
                         .group_count = 2,
                         .algorithm = RUBATO_MOMENTUM};
  Model model_;
};

TEST_F(ModelCheckTest, TakesAModelAsItIsGiven) {
  ASSERT_EQ(Check(), "");
  ASSERT_EQ(model_.tensors.size(), 2u);
  EXPECT_EQ(model_.tensors[0].name, "weight");
  EXPECT_EQ(model_.tensors[0].shape, (std::vector<int64_t>{3, 2}));
  EXPECT_EQ(model_.tensors[0].group, 1u);
  EXPECT_EQ(model_.groups[0].momentum, 0.9);
  EXPECT_EQ(model_.algorithm, static_cast<uint32_t>(RUBATO_MOMENTUM));
}

TEST_F(ModelCheckTest, NamesTheTensor) {
  tensors_[0].group = 2;
  EXPECT_EQ(Check(), "model.tensors[0].group = 2 (weight); the model has 2 groups");
  tensors_[0].group = 0;
  tensors_[1].name = "weight";
  EXPECT_EQ(Check(), "model.tensors[1].name: there is another tensor weight");
  tensors_[1].name = "";
  EXPECT_EQ(Check(), "model.tensors[1].name: is empty");
  given_.tensor_count = 0;
  EXPECT_EQ(Check(), "model: no tensors; 1 or more are needed, or a table");
}

TEST_F(ModelCheckTest, AModelMayHaveTables) {
  rubato_table tables[] = {{.name = "users", .dimension = 16, .algorithm = RUBATO_TABLE_FTRL, .l1 = 0.5, .shards = 4}};
  given_.tables = tables;
  given_.table_count = 1;
  given_.tensor_count = 0;
  ASSERT_EQ(Check(), "");
  ASSERT_EQ(model_.tables.size(), 1u);
  EXPECT_EQ(model_.tables[0].name, "users");
  EXPECT_EQ(model_.tables[0].dimension, 16);
  EXPECT_EQ(model_.tables[0].algorithm, static_cast<uint32_t>(RUBATO_TABLE_FTRL));
  EXPECT_EQ(model_.tables[0].l1, 0.5);
  EXPECT_EQ(model_.tables[0].shards, 4u);
  EXPECT_EQ(model_.tables[0].admit_after, 0u);
  const rubato_admission admission = {.admit_after = 2, .counters = 3, .expire_after_steps = 4, .most_rows = 5};
  given_.admission = &admission;
  ASSERT_EQ(Check(), "");
  EXPECT_EQ(model_.tables[0].admit_after, 2u);
  EXPECT_EQ(model_.tables[0].admission_counters, 3u);
  EXPECT_EQ(model_.tables[0].expire_after_steps, 4u);
  EXPECT_EQ(model_.tables[0].most_rows, 5u);
  rubato_row_format format = {.precision = RUBATO_BF16, .push = RUBATO_BF16, .pull = RUBATO_FLOAT32};
  given_.row_formats = &format;
  ASSERT_EQ(Check(), "");
  EXPECT_EQ(model_.tables[0].precision, static_cast<uint32_t>(RUBATO_BF16));
  EXPECT_EQ(model_.tables[0].push, static_cast<uint32_t>(RUBATO_BF16));
  EXPECT_EQ(model_.tables[0].pull, static_cast<uint32_t>(RUBATO_FLOAT32));
  format.pull = static_cast<rubato_number>(2);
  EXPECT_EQ(Check(), "model.row_formats[0].pull = 2 (users); RUBATO_FLOAT32 (0) or RUBATO_BF16 (1) is allowed");
  format.pull = RUBATO_BF16;
  tables[0].dimension = 0;
  EXPECT_EQ(Check(), "model.tables[0].dimension = 0 (users); 1 to 4096 is allowed");
  tables[0].name = nullptr;
  EXPECT_EQ(Check(), "model.tables[0].name: is empty");
  given_.tables = nullptr;
  EXPECT_EQ(Check(), "model.tables: is NULL");
}

TEST_F(ModelCheckTest, NamesTheGroupsValue) {
  groups_[1].momentum = 1;
  EXPECT_EQ(Check(), "group 1: momentum = 1; 0 or more, less than 1 is allowed");
  given_.algorithm = RUBATO_SGD;  // It takes no momentum.
  EXPECT_EQ(Check(), "");
  groups_[0].learning_rate = -1;
  EXPECT_EQ(Check(), "group 0: learning_rate = -1; a number >= 0 is allowed");
  groups_[0].learning_rate = 0;
  EXPECT_EQ(Check(), "");
}

TEST_F(ModelCheckTest, RefusesWhatIsNoAlgorithm) {
  for (int number : {0, 15}) {
    given_.algorithm = static_cast<rubato_algorithm>(number);
    EXPECT_EQ(Check(), absl::StrCat("model.algorithm = ", number, "; the values of rubato_algorithm are allowed"));
  }
}

// The library cannot see common/optimizer_traits.h, and says the same.
TEST_F(ModelCheckTest, ChecksTheHyperparametersThatServersTake) {
  const std::map<std::string, double Hyperparameters::*> fields = {{"momentum", &Hyperparameters::momentum},
                                                                   {"beta1", &Hyperparameters::beta1},
                                                                   {"beta2", &Hyperparameters::beta2},
                                                                   {"rho", &Hyperparameters::rho},
                                                                   {"epsilon", &Hyperparameters::epsilon}};
  int algorithms = 0;
  for (v1::OptimizerConfig::Algorithm algorithm : AllAlgorithms()) {
    SCOPED_TRACE(v1::OptimizerConfig::Algorithm_Name(algorithm));
    given_.algorithm = static_cast<rubato_algorithm>(algorithm);
    // Clients need not be able to ask for all of them.
    if (Check().rfind("model.algorithm", 0) == 0) continue;
    ++algorithms;
    for (const OptimizerParameter* parameter : optimizer::kAll) {
      // Not of a push; of optimizers that clients do not have.
      if (parameter == &optimizer::kInitialAccumulator || parameter == &optimizer::kTrustCoefficient) continue;
      Hyperparameters values = {.epsilon = 1};
      EXPECT_EQ(CheckHyperparameters(0, values, given_.algorithm), "");
      const auto field = fields.find(parameter->field);
      ASSERT_NE(field, fields.end()) << parameter->field;
      values.*(field->second) = -1;
      const std::string expected =
          TakesParameter(algorithm, *parameter)
              ? absl::StrCat("group 0: ", parameter->field, " = -1; ", parameter->range.text, " is allowed")
              : "";
      EXPECT_EQ(CheckHyperparameters(0, values, given_.algorithm), expected);
    }
  }
  EXPECT_GE(algorithms, 8);
}

}  // namespace
}  // namespace rubato::client
