#include <gtest/gtest.h>

#include "common/config/testing/good_job.h"

namespace rubato {
namespace {

// A job of columns: two features, a table of a column and a cross, and a bag of words.
const std::vector<std::string> kColumnsJob = {
    "data.teacher=",
    "data.columns={train_paths: 'a' test_paths: 'b' label: 'late' label_over: 15 features {column: 'miles'} "
    "features {column: 'age' mean: 40 standard_deviation: 9} keys {columns: 'from'} keys {columns: 'from' columns: "
    "'to'} keys {columns: 'text' words: true}}",
    "model.input_shape[0]=2",
    "model.layers[0].linear.units=2",
    "model.tables[0]={name: \"places\" dimension: 8 keys_per_example: 2 algorithm: ADAGRAD learning_rate: 0.1}",
    "model.tables[1]={name: \"words\" dimension: 8 keys_per_example: 64 algorithm: ADAGRAD learning_rate: 0.1 combine: "
    "MEAN}",
};

std::vector<std::string> WithColumns(const std::vector<std::string>& more) {
  std::vector<std::string> overrides = kColumnsJob;
  overrides.insert(overrides.end(), more.begin(), more.end());
  return overrides;
}

TEST(ValidateColumnsTest, AcceptsKeysAndNumbers) {
  EXPECT_EQ(ErrorOf(kColumnsJob), "");
  EXPECT_EQ(ErrorOf(WithColumns({"data.columns.keys[2].words=false", "data.columns.keys[2].byte_pairs=true",
                                 "data.columns.byte_pairs=some.pairs"})),
            "");
  EXPECT_EQ(ErrorOf({"data.teacher=", "model.input_shape[0]=1", "model.layers[0].linear.units=1",
                     "model.loss=MEAN_SQUARED_ERROR",
                     "data.columns={train_paths: 'a' test_paths: 'b' label: 'y' features {column: 'x' log1p: true}}"}),
            "");
}

TEST(ValidateColumnsTest, NamesTheFieldThatIsWrong) {
  Check({
      {WithColumns({"data.columns.train_paths="}), "data.columns.train_paths: value empty; allowed: one path or more"},
      {WithColumns({"data.columns.test_paths="}),
       "data.columns.test_paths: value empty; allowed: one path or more, because cluster.evaluators is 1"},
      {WithColumns({"data.columns.separator=ab"}),
       "data.columns.separator: value \"ab\"; allowed: one ASCII character, and no quote or line end"},
      {WithColumns({"data.columns.separator=\n"}),
       "data.columns.separator: value \"\\n\"; allowed: one ASCII character, and no quote or line end"},
      {WithColumns({"data.columns.label="}), "data.columns.label: value empty; allowed: the name of a column"},
      {WithColumns({"data.columns.label_over=nan"}), "data.columns.label_over: value nan; allowed: a finite number"},
      {WithColumns({"data.columns.features[0].column="}),
       "data.columns.features[0].column: value empty; allowed: the name of a column"},
      {WithColumns({"data.columns.features[1].mean=inf"}),
       "data.columns.features[1].mean: value inf; allowed: a finite number"},
      {WithColumns({"data.columns.features[1].standard_deviation=0"}),
       "data.columns.features[1].standard_deviation: value 0; allowed: a number > 0"},
      {WithColumns({"data.columns.keys[0].columns="}),
       "data.columns.keys[0].columns: value empty; allowed: one column, or those of a cross"},
      {WithColumns({"data.columns.keys[1]={columns: 'from' columns: ''}"}),
       "data.columns.keys[1].columns[1]: value empty; allowed: the name of a column"},
      {WithColumns({"data.columns.keys[0].bucket=-1"}),
       "data.columns.keys[0].bucket: value -1; allowed: a number >= 0"},
      {WithColumns({"data.columns.keys[2].bucket=5"}),
       "data.columns.keys[2].bucket: value 5; allowed: absent with words"},
      {WithColumns({"data.columns.keys[2].columns[1]=more"}),
       "data.columns.keys[2].columns: value 2 columns; allowed: 1 with words"},
      {WithColumns({"data.columns.keys[2].byte_pairs=true", "data.columns.byte_pairs=some.pairs"}),
       "data.columns.keys[2].byte_pairs: value true; allowed: false with words"},
      {WithColumns({"data.columns.keys[2].words=false", "data.columns.keys[2].byte_pairs=true"}),
       "data.columns.byte_pairs: value empty; allowed: the path of what rubato byte-pairs wrote, because an entry of "
       "keys has byte_pairs"},
      {WithColumns({"data.columns.byte_pairs=some.pairs"}),
       "data.columns.byte_pairs: value some.pairs; allowed: absent, because no entry of keys has byte_pairs"},
      {WithColumns({"data.columns.keys[0].byte_pairs=true", "data.columns.byte_pairs=some.pairs"}),
       "data.columns.keys[0].byte_pairs: value true; allowed: false, as the entry is one of the 2 of table places; an "
       "entry of byte_pairs is the only one of a table with combine"},
      {WithColumns({"model.input_shape[0]=3"}),
       "data.columns.features: value 2 columns; allowed: 3, as many as model.input_shape says"},
      {WithColumns({"model.tables[0].keys_per_example=1"}),
       "data.columns.keys[2].words: value true; allowed: false, as the entry is one of the 64 of table words; an entry "
       "of words is the only one of a table with combine"},
      {WithColumns({"data.columns.keys[2].words=false"}),
       "data.columns.keys: value 3 entries; allowed: 66, as the model's tables have keys"},
      {WithColumns({"data.columns.keys[0].words=true"}),
       "data.columns.keys[0].words: value true; allowed: false, as the entry is one of the 2 of table places; an entry "
       "of words is the only one of a table with combine"},
  });
}

TEST(ValidateColumnsTest, LabelsAreOfTheLoss) {
  EXPECT_EQ(ErrorOf(WithColumns({"model.loss=MEAN_SQUARED_ERROR"})),
            "model.loss: value MEAN_SQUARED_ERROR; allowed: SOFTMAX_CROSS_ENTROPY, or a last layer with 1 output (it "
            "has 2) with data.columns, whose labels are single numbers");
}

}  // namespace
}  // namespace rubato
