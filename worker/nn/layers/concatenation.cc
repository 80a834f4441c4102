#include <algorithm>

#include "common/status.h"
#include "worker/nn/layers/join_table.h"

namespace rubato::worker {
namespace {

// Ranges of outputs side by side.
class Concatenation : public Join {
 public:
  // A range of an input, and where it goes.
  struct Part {
    size_t input = 0;
    ColumnRange range;
  };

  Concatenation(Backend* backend, const JoinOptions& options, std::vector<Part> parts, DeviceTensor y,
                std::vector<DeviceTensor> gradients)
      : backend_(backend),
        options_(options),
        parts_(std::move(parts)),
        y_(std::move(y)),
        gradients_(std::move(gradients)) {}

  absl::StatusOr<DeviceTensor> Forward(const std::vector<DeviceTensor>& inputs) override {
    DeviceTensor y = y_.Rows(inputs[0].rows());
    for (const Part& part : parts_) {
      RUBATO_RETURN_IF_ERROR(backend_->CopyColumns(part.range, false, inputs[part.input], y));
    }
    return y;
  }

  absl::Status Backward(const std::vector<DeviceTensor>&, const DeviceTensor& dy,
                        std::vector<DeviceTensor>* gradients) override {
    for (const Part& part : parts_) {
      if (!options_.inputs[part.input].needs_gradient) continue;
      DeviceTensor& sum = (*gradients)[part.input];
      const bool begun = !sum.empty();
      if (!begun) {
        sum = gradients_[part.input].Rows(dy.rows());
        // Of what the range leaves out.
        if (part.range.count < sum.columns()) RUBATO_RETURN_IF_ERROR(backend_->Fill(0, sum));
      }
      const ColumnRange back = {.from = part.range.to, .count = part.range.count, .to = part.range.from};
      RUBATO_RETURN_IF_ERROR(backend_->CopyColumns(back, begun, dy, sum));
    }
    return absl::OkStatus();
  }

 private:
  Backend* const backend_;
  const JoinOptions options_;
  const std::vector<Part> parts_;
  const DeviceTensor y_;
  const std::vector<DeviceTensor> gradients_;  // By input.
};

}  // namespace

absl::StatusOr<std::unique_ptr<Join>> CreateConcatenation(const LayerSpec& spec, const LayerContext& context,
                                                          const JoinOptions& options) {
  const std::vector<int> layers = JoinedLayers(spec);
  std::vector<Concatenation::Part> parts;
  int64_t to = 0;
  for (const SourceRange& part : spec.parts) {
    const auto input = std::find(layers.begin(), layers.end(), part.layer) - layers.begin();
    const int64_t count = part.end - part.begin;
    parts.push_back({.input = static_cast<size_t>(input), .range = {.from = part.begin, .count = count, .to = to}});
    to += count;
  }
  std::vector<DeviceTensor> gradients;
  for (const JoinInput& input : options.inputs) {
    RUBATO_ASSIGN_OR_RETURN(gradients.emplace_back(), AllocateJoinGradient(context, input));
  }
  RUBATO_ASSIGN_OR_RETURN(DeviceTensor y, AllocateOutput(spec, context));
  return std::make_unique<Concatenation>(context.backend, options, std::move(parts), std::move(y),
                                         std::move(gradients));
}

}  // namespace rubato::worker
