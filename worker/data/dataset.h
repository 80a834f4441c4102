#ifndef RUBATO_WORKER_DATA_DATASET_H_
#define RUBATO_WORKER_DATA_DATASET_H_

#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "common/model_spec.h"

namespace rubato::worker {

enum class LabelKind {
  // labels_per_example() class numbers per example.
  kClasses,
  // One vector of target_elements() numbers per example.
  kTargets,
};

// The examples of one split, in a fixed order. Immutable and thread-safe.
//
//   std::vector<float> inputs(n * dataset->input_elements());
//   std::vector<int32_t> classes(n * dataset->labels_per_example());
//   RUBATO_RETURN_IF_ERROR(dataset->Read(indices, n, inputs.data(), classes.data(), nullptr));
class Dataset {
 public:
  struct Properties {
    int64_t size = 0;
    Shape input_shape;
    LabelKind label_kind = LabelKind::kClasses;
    // Numbers in a target vector; 0 for classes.
    int64_t target_elements = 0;
    // Class numbers of an example: one, or one for each position of a sequence.
    int64_t labels_per_example = 1;
    // Keys of rows of the model's tables: places for them, if an example may have fewer.
    int64_t keys_per_example = 0;
    // As many as the model's tables if an example may have fewer keys in those with `combine` than places for them.
    // 0: each place has a key.
    int64_t key_counts_per_example = 0;
    // Whether keys have weights, which their rows are multiplied with: in tables that combine them by SUM alone.
    bool has_key_weights = false;
  };

  explicit Dataset(Properties properties)
      : properties_(std::move(properties)), input_elements_(NumElements(properties_.input_shape)) {}
  virtual ~Dataset() = default;
  Dataset(const Dataset&) = delete;
  Dataset& operator=(const Dataset&) = delete;

  int64_t size() const { return properties_.size; }
  // Of one example, without the batch.
  const Shape& input_shape() const { return properties_.input_shape; }
  int64_t input_elements() const { return input_elements_; }
  LabelKind label_kind() const { return properties_.label_kind; }
  int64_t target_elements() const { return properties_.target_elements; }
  int64_t labels_per_example() const { return properties_.labels_per_example; }
  int64_t keys_per_example() const { return properties_.keys_per_example; }
  int64_t key_counts_per_example() const { return properties_.key_counts_per_example; }
  int64_t key_weights_per_example() const { return properties_.has_key_weights ? keys_per_example() : 0; }

  // Writes the n examples with these indices one after another: inputs [n, input_shape], keys [n, keys_per_example],
  // key_counts [n, key_counts_per_example], key_weights [n, key_weights_per_example] and, by label kind, classes [n,
  // labels_per_example] or targets [n, target_elements]; what there is none of is not used and may be null. OutOfRange
  // names the first index that is not in [0, size()); nothing is written then. Other codes if a source fails.
  //
  // An example's keys are in the order of the model's tables, each of which has TableSpec::keys_per_example places.
  // With key_counts, the keys in a table are the first of its places, as many as the count says: no more than there are
  // places, and just as many if the table has no `combine`. What is in the others is not read. Weights stand as keys
  // do.
  absl::Status Read(const int64_t* indices, int64_t n, float* inputs, int32_t* classes, float* targets,
                    uint64_t* keys = nullptr, uint32_t* key_counts = nullptr, float* key_weights = nullptr) const;

 private:
  // The same with good indices.
  virtual absl::Status ReadExamples(const int64_t* indices, int64_t n, float* inputs, int32_t* classes, float* targets,
                                    uint64_t* keys, uint32_t* key_counts) const = 0;
  // Called instead, and to be overridden, if keys have weights.
  virtual absl::Status ReadWeightedExamples(const int64_t* indices, int64_t n, float* inputs, int32_t* classes,
                                            float* targets, uint64_t* keys, uint32_t* key_counts,
                                            float* key_weights) const;

  const Properties properties_;
  const int64_t input_elements_;
};

}  // namespace rubato::worker

#endif  // RUBATO_WORKER_DATA_DATASET_H_
