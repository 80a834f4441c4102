#ifndef RUBATO_WORKER_DATA_TEACHER_DATASET_H_
#define RUBATO_WORKER_DATA_TEACHER_DATASET_H_

#include <memory>

#include "common/model_spec.h"
#include "worker/data/dataset.h"

namespace rubato::worker {

struct TeacherOptions {
  uint64_t seed = 0;
  int64_t examples = 0;
  int64_t hidden_units = 64;
  // Standard deviation of what is added to the teacher's outputs.
  double noise = 0;
  // Train and test examples come from one teacher and from different random streams.
  bool test = false;
};

// Examples labelled by a fixed random network with one tanh layer. Inputs are standard normal; both layers' weights are
// normal with variance 1 / fan_in. The label is the largest output, or the outputs themselves under
// MEAN_SQUARED_ERROR. An example is drawn when it is read, from (seed, split, index) alone, so the memory is that of
// the teacher's weights whatever the number of examples.
std::shared_ptr<const Dataset> MakeTeacherDataset(const TeacherOptions& options, const ModelSpec& model);

}  // namespace rubato::worker

#endif  // RUBATO_WORKER_DATA_TEACHER_DATASET_H_
