#ifndef RUBATO_CLI_PREDICT_PREDICTED_LINE_H_
#define RUBATO_CLI_PREDICT_PREDICTED_LINE_H_

#include <string>

#include "absl/types/span.h"
#include "proto/model_config.pb.h"

namespace rubato {

// What a model says of an example whose outputs these are, one or more, as a line without its end: with
// BINARY_CROSS_ENTROPY the probability of class 1; with SOFTMAX_CROSS_ENTROPY "class,probability", the first of the
// most probable; with MEAN_SQUARED_ERROR the outputs, separated by commas. Pure.
std::string PredictedLine(v1::ModelConfig::Loss loss, absl::Span<const float> outputs);

}  // namespace rubato

#endif  // RUBATO_CLI_PREDICT_PREDICTED_LINE_H_
