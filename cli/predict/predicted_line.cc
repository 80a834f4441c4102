#include "cli/predict/predicted_line.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace rubato {
namespace {

// Enough digits to tell float32 apart.
std::string NumberText(double number) { return absl::StrFormat("%.9g", number); }

}  // namespace

std::string PredictedLine(v1::ModelConfig::Loss loss, absl::Span<const float> outputs) {
  if (loss == v1::ModelConfig::BINARY_CROSS_ENTROPY) return NumberText(1 / (1 + std::exp(-double{outputs[0]})));
  if (loss != v1::ModelConfig::SOFTMAX_CROSS_ENTROPY) {
    return absl::StrJoin(outputs, ",", [](std::string* text, float output) { text->append(NumberText(output)); });
  }
  const auto best = std::max_element(outputs.begin(), outputs.end());
  double sum = 0;
  for (const float output : outputs) sum += std::exp(double{output} - *best);
  return absl::StrCat(best - outputs.begin(), ",", NumberText(1 / sum));
}

}  // namespace rubato
