#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "common/random.h"
#include "worker/data/readers/readers.h"

namespace rubato::worker {
namespace {

struct TeacherOptions {
  uint64_t seed = 0;
  int64_t examples = 0;
  int64_t hidden_units = 64;
  // Standard deviation of what is added to the teacher's outputs.
  double noise = 0;
  // Train and test examples come from one teacher and from different random streams.
  bool test = false;
};

// Weights [inputs, outputs]: the inner loop below runs over outputs.
std::vector<float> DrawWeights(uint64_t seed, const char* purpose, int64_t inputs, int64_t outputs) {
  Random random(seed, StreamId(purpose));
  const double deviation = 1 / std::sqrt(static_cast<double>(inputs));
  std::vector<float> weights(inputs * outputs);
  for (float& weight : weights) weight = static_cast<float>(random.Normal() * deviation);
  return weights;
}

// y = x W.
void Multiply(const float* x, const std::vector<float>& weights, std::vector<float>* y) {
  const int64_t outputs = static_cast<int64_t>(y->size());
  const int64_t inputs = static_cast<int64_t>(weights.size()) / outputs;
  std::fill(y->begin(), y->end(), 0.0f);
  float* sum = y->data();
  for (int64_t i = 0; i < inputs; ++i) {
    const float* row = weights.data() + i * outputs;
    for (int64_t j = 0; j < outputs; ++j) sum[j] += x[i] * row[j];
  }
}

class TeacherDataset : public Dataset {
 public:
  TeacherDataset(Properties properties, const TeacherOptions& options, int64_t outputs)
      : Dataset(std::move(properties)),
        options_(options),
        outputs_(outputs),
        first_weights_(DrawWeights(options.seed, "teacher hidden", input_elements(), options.hidden_units)),
        second_weights_(DrawWeights(options.seed, "teacher output", options.hidden_units, outputs)) {}

 private:
  absl::Status ReadExamples(const int64_t* indices, int64_t n, float* inputs, int32_t* classes, float* targets,
                            uint64_t*, uint32_t*) const override {
    std::vector<float> hidden(options_.hidden_units);
    std::vector<float> output(outputs_);
    const char* purpose = options_.test ? "teacher test" : "teacher train";
    for (int64_t i = 0; i < n; ++i) {
      Random random(options_.seed, StreamId(purpose, static_cast<uint64_t>(indices[i])));
      float* input = inputs + i * input_elements();
      for (int64_t k = 0; k < input_elements(); ++k) input[k] = static_cast<float>(random.Normal());
      Multiply(input, first_weights_, &hidden);
      for (float& value : hidden) value = std::tanh(value);
      Multiply(hidden.data(), second_weights_, &output);
      if (options_.noise > 0) {
        for (float& value : output) value += static_cast<float>(options_.noise * random.Normal());
      }
      if (label_kind() == LabelKind::kClasses) {
        const auto largest = std::max_element(output.begin(), output.end()) - output.begin();
        classes[i] = outputs_ == 1 ? output[0] > 0 : static_cast<int32_t>(largest);
      } else {
        std::copy(output.begin(), output.end(), targets + i * outputs_);
      }
    }
    return absl::OkStatus();
  }

  const TeacherOptions options_;
  const int64_t outputs_;
  const std::vector<float> first_weights_;
  const std::vector<float> second_weights_;
};

}  // namespace

// Examples labelled by a fixed random network with one tanh layer. Inputs are standard normal; both layers' weights are
// normal with variance 1 / fan_in. The label is the largest output, or the outputs themselves under MEAN_SQUARED_ERROR;
// with one output and BINARY_CROSS_ENTROPY whether that is over 0.
// An example is drawn when it is read, from (seed, split, index) alone, so the memory is that of the teacher's weights
// whatever the number of examples.
DatasetOr OpenTeacher(const ReaderRequest& request) {
  const v1::TeacherData& teacher = request.config.data().teacher();
  const ModelSpec& model = request.model;
  const TeacherOptions options = {.seed = request.config.seed(),
                                  .examples = request.test ? teacher.test_examples() : teacher.train_examples(),
                                  .hidden_units = teacher.hidden_units(),
                                  .noise = teacher.noise(),
                                  .test = request.test};
  if (options.examples < 1) {
    return MissingSource(request.test ? "data.teacher.test_examples" : "data.teacher.train_examples");
  }
  const bool targets = model.loss == v1::ModelConfig::MEAN_SQUARED_ERROR;
  const int64_t outputs = NumElements(model.output);
  Dataset::Properties properties = {.size = options.examples,
                                    .input_shape = model.input,
                                    .label_kind = targets ? LabelKind::kTargets : LabelKind::kClasses,
                                    .target_elements = targets ? outputs : 0};
  return std::make_shared<const TeacherDataset>(std::move(properties), options, outputs);
}

}  // namespace rubato::worker
