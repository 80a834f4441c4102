#include "bench/gpu/step_floor.h"

namespace rubato::bench {

LayerWork WorkOf(const ModelSpec& spec, const LayerSpec& layer, int64_t batch, ElementType activations) {
  const auto bytes_of = [&](int64_t elements) { return static_cast<double>(elements * ElementBytes(activations)); };
  const int64_t inputs = batch * NumElements(layer.input), outputs = batch * NumElements(layer.output);
  const double x = bytes_of(inputs), y = bytes_of(outputs);
  const double dx = layer.source == kModelInput ? 0 : x;
  const Shape none;
  const Shape& weight = layer.tensors.empty() ? none : spec.tensors[layer.tensors[0]].shape;
  const double weights = layer.tensors.empty() ? 0 : static_cast<double>(NumElements(weight));
  LayerWork work = {.forward = {.bytes = x + y}, .backward = {.bytes = x + y + dx}};
  if (layer.config.has_flatten()) return {};
  if (layer.config.has_linear() || layer.config.has_conv2d()) {
    // Each output is a product with a row of the weight, each input's gradient one with a column.
    const double products = 2 * static_cast<double>(outputs) * weights / static_cast<double>(weight[0]);
    work.forward.flops = products;
    work.backward.flops = products * (dx > 0 ? 2 : 1);
    // Float32; backward, the gradient too.
    work.forward.bytes += 4 * weights;
    work.backward.bytes += (dx > 0 ? 8 : 4) * weights;
  } else if (layer.config.has_attention()) {
    // Half of the scores; two products with them forward, and five backward.
    const double products = static_cast<double>(outputs) * static_cast<double>(layer.output[0]);
    work.forward.flops = 2 * products;
    work.backward.flops = 5 * products;
    work.backward.bytes += y;
  } else if (layer.config.has_residual()) {
    work.forward.bytes = work.backward.bytes = 3 * y;
  } else if (layer.config.has_embedding()) {
    work.forward.bytes = y;
    work.backward.bytes = y + 4 * weights;
  }
  // Of all others the floor is what they read and write.
  return work;
}

double StepFloor(const ModelSpec& spec, int64_t batch, ElementType activations, const DeviceRates& rates) {
  double seconds = 0;
  for (const LayerSpec& layer : spec.layers) {
    const LayerWork work = WorkOf(spec, layer, batch, activations);
    seconds += FloorSeconds(work.forward, rates) + FloorSeconds(work.backward, rates);
  }
  return seconds;
}

}  // namespace rubato::bench
