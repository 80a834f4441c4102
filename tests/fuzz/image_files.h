#ifndef RUBATO_TESTS_FUZZ_IMAGE_FILES_H_
#define RUBATO_TESTS_FUZZ_IMAGE_FILES_H_

#include <utility>
#include <vector>

#include "common/model_spec.h"
#include "common/shape.h"
#include "tests/fuzz/fuzz_target.h"
#include "worker/data/dataset.h"

namespace rubato {

// A model of images of shape `input` in `classes` classes.
inline ModelSpec ImageModel(Shape input, int32_t classes) {
  ModelSpec model;
  model.input = std::move(input);
  model.output = {classes};
  model.loss = v1::ModelConfig::SOFTMAX_CROSS_ENTROPY;
  return model;
}

// Reads every example, whose pixels are from 0 to 1, and checks it against the model.
inline void ReadImages(const worker::Dataset& dataset, const ModelSpec& model) {
  RUBATO_FUZZ_CHECK(dataset.input_elements() == NumElements(model.input), dataset.input_elements());
  RUBATO_FUZZ_CHECK(dataset.label_kind() == worker::LabelKind::kClasses, "labels are not classes");
  std::vector<float> inputs(dataset.input_elements());
  for (int64_t i = 0; i < dataset.size(); ++i) {
    int32_t label = -1;
    const absl::Status status = dataset.Read(&i, 1, inputs.data(), &label, nullptr);
    RUBATO_FUZZ_CHECK(status.ok(), status);
    RUBATO_FUZZ_CHECK(label >= 0 && label < model.output[0], label);
    for (const float input : inputs) RUBATO_FUZZ_CHECK(input >= 0 && input <= 1, input);
  }
}

}  // namespace rubato

#endif  // RUBATO_TESTS_FUZZ_IMAGE_FILES_H_
