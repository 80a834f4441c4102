#include "client/library/model_check.h"

#include <gtest/gtest.h>

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
  EXPECT_EQ(Check(), "model: no tensors; 1 or more are needed");
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
  given_.algorithm = static_cast<rubato_algorithm>(9);
  EXPECT_EQ(Check(), "model.algorithm = 9; RUBATO_SGD to RUBATO_MEAN are allowed");
}

}  // namespace
}  // namespace rubato::client
