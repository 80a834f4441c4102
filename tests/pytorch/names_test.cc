// Tensors have the names and shapes that those of the equal torch.nn model have, for which nobody needs PyTorch here:
// state_dicts.golden says what they are.
#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>

#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/model_spec.h"
#include "common/storage/file.h"
#include "tests/pytorch/models.h"

namespace rubato::pytorch {
namespace {

// By model: "tensor shape", of the file's lines "model tensor shape".
std::map<std::string, std::vector<std::string>> GoldenTensors() {
  std::map<std::string, std::vector<std::string>> tensors;
  absl::StatusOr<std::string> text = ReadFile("tests/pytorch/state_dicts.golden");
  EXPECT_TRUE(text.ok()) << text.status();
  for (absl::string_view line : absl::StrSplit(text.value_or(""), '\n', absl::SkipEmpty())) {
    if (line[0] == '#') continue;
    const std::pair<std::string, std::string> parts = absl::StrSplit(line, absl::MaxSplits(' ', 1));
    tensors[parts.first].push_back(parts.second);
  }
  return tensors;
}

TEST(PyTorchNamesTest, TensorsAreThoseOfTheEqualModel) {
  std::map<std::string, std::vector<std::string>> golden = GoldenTensors();
  EXPECT_EQ(golden.size(), Models().size());
  for (const NamedModel& model : Models()) {
    v1::ModelConfig config;
    ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(model.config, &config)) << model.name;
    absl::StatusOr<ModelSpec> spec = BuildModelSpec(config);
    ASSERT_TRUE(spec.ok()) << model.name << ": " << spec.status();
    std::vector<std::string> tensors;
    for (const TensorSpec& tensor : spec->tensors) {
      tensors.push_back(absl::StrCat(tensor.name, " ", ShapeText(tensor.shape)));
    }
    EXPECT_THAT(tensors, ::testing::UnorderedElementsAreArray(golden[model.name])) << model.name;
  }
}

}  // namespace
}  // namespace rubato::pytorch
