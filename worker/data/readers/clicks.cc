#include <cmath>
#include <utility>
#include <vector>

#include "common/random.h"
#include "common/status.h"
#include "worker/data/power_law.h"
#include "worker/data/readers/readers.h"

namespace rubato::worker {
namespace {

class ClicksDataset : public Dataset {
 public:
  ClicksDataset(Properties properties, const ReaderRequest& request)
      : Dataset(std::move(properties)),
        seed_(request.config.seed()),
        // Train and test examples have the same hidden weights and different random streams.
        purpose_(request.test ? "clicks test" : "clicks train"),
        ranks_(request.config.data().clicks().keys(), request.config.data().clicks().exponent()),
        feature_weights_(input_elements()) {
    Random random(seed_, StreamId("clicks features"));
    for (double& weight : feature_weights_) weight = random.Normal() / std::sqrt(feature_weights_.size());
  }

 private:
  absl::Status ReadExamples(const int64_t* indices, int64_t n, float* inputs, int32_t* classes, float*, uint64_t* keys,
                            uint32_t*) const override {
    for (int64_t i = 0; i < n; ++i) {
      Random random(seed_, StreamId(purpose_, static_cast<uint64_t>(indices[i])));
      float* const features = inputs + i * input_elements();
      for (int64_t k = 0; k < input_elements(); ++k) features[k] = static_cast<float>(random.Normal());
      uint64_t* const places = keys + i * keys_per_example();
      for (int64_t place = 0; place < keys_per_example(); ++place) {
        places[place] = StreamId("clicks", place, ranks_.Draw(&random));
      }
      classes[i] = random.Uniform() < 1 / (1 + std::exp(-Logit(features, places))) ? 1 : 0;
    }
    return absl::OkStatus();
  }

  // A sum of up to three parts, each with a standard deviation of about 1.
  double Logit(const float* features, const uint64_t* keys) const {
    double of_features = 0, of_keys = 0;
    for (int64_t k = 0; k < input_elements(); ++k) of_features += feature_weights_[k] * features[k];
    for (int64_t place = 0; place < keys_per_example(); ++place) {
      of_keys += Random(seed_, StreamId("clicks key", keys[place])).Normal();
    }
    double logit = of_features + of_keys / std::sqrt(keys_per_example());
    if (keys_per_example() >= 2) logit += Random(seed_, StreamId("clicks pair", keys[0], keys[1])).Normal();
    return logit;
  }

  const uint64_t seed_;
  const char* const purpose_;
  const PowerLaw ranks_;
  std::vector<double> feature_weights_;
};

}  // namespace

// Examples of the shape of clicks. Features are standard normal. The key at place p, counted from 0 over all tables, is
// a hash of p and of a rank from a power law. The class is 1 with a probability of 1 / (1 + e^-z), where z is a sum of
// hidden normal weights: of the keys, of the pair of the first two, and of the features as a linear function. An
// example and the weights of its keys are drawn when it is read, from (seed, split, index) alone, so the memory does
// not depend on the number of examples or keys.
DatasetOr OpenClicks(const ReaderRequest& request) {
  const v1::ClicksData& clicks = request.config.data().clicks();
  const int64_t examples = request.test ? clicks.test_examples() : clicks.train_examples();
  if (examples < 1) return MissingSource(request.test ? "data.clicks.test_examples" : "data.clicks.train_examples");
  RUBATO_RETURN_IF_ERROR(CheckTwoClasses(request.model, "data.clicks"));
  Dataset::Properties properties = {
      .size = examples, .input_shape = request.model.features, .keys_per_example = request.model.keys_per_example()};
  return std::make_shared<const ClicksDataset>(std::move(properties), request);
}

}  // namespace rubato::worker
