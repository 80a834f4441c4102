#include <algorithm>

#include "common/status.h"
#include "worker/nn/layers/layer_table.h"

namespace rubato::worker {
namespace {

// Units of a part: enough for a product to cost no more in parts, and for a message to be worth sending. Products are
// slower with other multiples.
constexpr int64_t kUnitsOfPartStep = 64, kUnitsOfPartMin = 128;
constexpr int64_t kPartBytesMin = int64_t{256} << 10;
constexpr int64_t kPartsMax = 16;

// How many units each part has, the last one perhaps fewer.
int64_t UnitsOfPart(const DeviceTensor& weight) {
  const int64_t units = weight.rows(), row_bytes = weight.columns() * static_cast<int64_t>(sizeof(float));
  const int64_t least =
      std::max({kUnitsOfPartMin, kPartBytesMin / std::max<int64_t>(row_bytes, 1), (units + kPartsMax - 1) / kPartsMax});
  return (least + kUnitsOfPartStep - 1) / kUnitsOfPartStep * kUnitsOfPartStep;
}

// y = x weight^T + bias, over flattened inputs or over each position of a sequence. Where the host computes, large
// weights are taken in parts.
class LinearLayer : public Layer {
 public:
  LinearLayer(Backend* backend, LayerParameters parameters, OperandWeight weight, DeviceTensor y, DeviceTensor dx)
      : backend_(backend),
        parameters_(std::move(parameters)),
        weight_(std::move(weight)),
        y_(std::move(y)),
        dx_(std::move(dx)),
        units_of_part_(backend->HostPointer(parameters_.weight) == nullptr ? units()
                                                                           : UnitsOfPart(parameters_.weight)) {}

  absl::StatusOr<DeviceTensor> Forward(const DeviceTensor& x, const ForwardPass& pass) override {
    DeviceTensor y = y_.Rows(x.rows());
    if (parts() > 1) {
      RUBATO_RETURN_IF_ERROR(ForwardUnits(UnitsOf(pass.part), AsRows(x, inputs()), AsRows(y, units())));
      return y;
    }
    RUBATO_RETURN_IF_ERROR(weight_.Update());
    RUBATO_RETURN_IF_ERROR(
        backend_->Linear(AsRows(x, inputs()), weight_.tensor(), parameters_.bias, AsRows(y, units())));
    return y;
  }

  absl::StatusOr<DeviceTensor> Backward(const DeviceTensor& x, const DeviceTensor&, const DeviceTensor& dy,
                                        const BackwardPass& pass) override {
    DeviceTensor dx = pass.input_gradient ? dx_.Rows(x.rows()) : DeviceTensor();
    if (parts() > 1) {
      if (pass.input_gradient && pass.part == 0) {
        // While the weights are those of this step.
        RUBATO_RETURN_IF_ERROR(
            backend_->Gemm(false, false, 1, AsRows(dy, units()), parameters_.weight, 0, AsRows(dx, inputs())));
      }
      if (pass.parameter_gradients) {
        RUBATO_RETURN_IF_ERROR(
            UnitsGradient(UnitsOf(pass.part), AsRows(x, inputs()), AsRows(dy, units()), pass.accumulate));
      }
      return dx;
    }
    RUBATO_RETURN_IF_ERROR(backend_->LinearBackward(AsRows(x, inputs()), weight_.tensor(), AsRows(dy, units()),
                                                    pass.accumulate, pass.input_gradient ? AsRows(dx, inputs()) : dx,
                                                    parameters_.weight_gradient, parameters_.bias_gradient));
    return dx;
  }

  int parts() const override { return static_cast<int>((units() + units_of_part_ - 1) / units_of_part_); }
  int64_t PartEnd(int part) const override { return UnitsOf(part).end * inputs(); }
  bool keeps_output_gradient() const override { return true; }

 private:
  UnitRange UnitsOf(int part) const {
    return {.begin = part * units_of_part_, .end = std::min((part + 1) * units_of_part_, units())};
  }

  absl::Status ForwardUnits(const UnitRange& range, const DeviceTensor& x, const DeviceTensor& y) {
    RUBATO_RETURN_IF_ERROR(backend_->LinearUnits(range, x, parameters_.weight, y));
    if (range.end < units() || parameters_.bias.empty()) return absl::OkStatus();
    return backend_->AddBias(parameters_.bias, y);
  }

  absl::Status UnitsGradient(const UnitRange& range, const DeviceTensor& x, const DeviceTensor& dy, bool accumulate) {
    if (range.begin == 0 && !parameters_.bias.empty()) {
      RUBATO_RETURN_IF_ERROR(backend_->BiasGradient(dy, accumulate, parameters_.bias_gradient));
    }
    return backend_->LinearUnitsGradient(range, x, dy, accumulate, parameters_.weight_gradient);
  }

  // The weight's shape says whether it works on whole examples or on each position of them.
  int64_t units() const { return parameters_.weight.rows(); }
  int64_t inputs() const { return parameters_.weight.columns(); }

  Backend* const backend_;
  const LayerParameters parameters_;
  const OperandWeight weight_;
  const DeviceTensor y_, dx_;
  const int64_t units_of_part_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Layer>> CreateLinearLayer(const LayerSpec& spec, const LayerContext& context,
                                                         const LayerParameters& parameters) {
  RUBATO_ASSIGN_OR_RETURN(DeviceTensor y, AllocateOutput(spec, context));
  RUBATO_ASSIGN_OR_RETURN(DeviceTensor dx, AllocateInputGradient(spec, context));
  RUBATO_ASSIGN_OR_RETURN(OperandWeight weight, OperandWeight::Create(context.backend, parameters.weight));
  return std::make_unique<LinearLayer>(context.backend, parameters, std::move(weight), std::move(y), std::move(dx));
}

}  // namespace rubato::worker
