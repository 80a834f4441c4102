#include "bench/gpu/operation_cases.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "bench/gpu/random_tensors.h"
#include "kernels/codec/codec.h"

namespace rubato::bench {
namespace {

using Cases = std::vector<OperationCase>;

// Makes the tensors of a group. After a failure they are empty, and status() says why.
class TensorFactory {
 public:
  TensorFactory(Backend* backend, int64_t scale) : b(*backend), scale(scale) {}

  DeviceTensor Floats(Shape shape) { return Keep(NormalTensor(b, std::move(shape), ElementType::kFloat32, ++seed_)); }
  DeviceTensor Activations(Shape shape) { return Keep(NormalTensor(b, std::move(shape), b.ActivationType(), ++seed_)); }
  DeviceTensor Indices(Shape shape, int64_t bound) { return Keep(IndexTensor(b, std::move(shape), bound)); }
  DeviceTensor Zeros(Shape shape, ElementType type) { return Keep(b.Allocate(std::move(shape), type)); }
  std::shared_ptr<void> Host(int64_t bytes) { return Keep(b.AllocateHost(bytes)); }

  // Bytes of so many activations, and of so many numbers of 32 bits.
  double Activation(int64_t elements) const { return static_cast<double>(elements * ElementBytes(b.ActivationType())); }
  static double Words(int64_t elements) { return 4.0 * static_cast<double>(elements); }
  const absl::Status& status() const { return status_; }

  Backend& b;
  const int64_t scale;

 private:
  template <typename T>
  T Keep(absl::StatusOr<T> made) {
    status_.Update(made.status());
    return made.ok() ? *std::move(made) : T();
  }

  uint64_t seed_ = 0;
  absl::Status status_;
};

Cases Copies(TensorFactory& m) {
  const int64_t n = m.scale << 20;
  const DeviceTensor x = m.Floats({n}), y = m.Floats({n}), sum = m.Zeros({1}, ElementType::kFloat64);
  const std::shared_ptr<void> host = m.Host(4 * n);
  const double bytes = TensorFactory::Words(n);
  return {
      {"copy on the device", {.bytes = 2 * bytes}, [&b = m.b, x, y] { return b.Copy(x, y); }},
      {"copy to the device", {.bytes = bytes}, [&b = m.b, x, n, host] { return b.CopyToDevice(x, 0, n, host.get()); }},
      {"copy to the host", {.bytes = bytes}, [&b = m.b, x, n, host] { return b.CopyToHost(x, 0, n, host.get()); }},
      {"axpy", {.bytes = 3 * bytes}, [&b = m.b, x, y] { return b.Axpy(1e-9f, x, y); }},
      {"sum of squares", {.bytes = bytes}, [&b = m.b, x, sum] { return b.SumOfSquares(x, false, sum); }},
  };
}

Cases Elements(TensorFactory& m) {
  const int64_t n = m.scale << 20;
  const DeviceTensor floats = m.Floats({n}), a = m.Activations({n}), x = m.Activations({n}), dy = m.Activations({n}),
                     y = m.Activations({n});
  const double bytes = m.Activation(n);
  return {
      {"from float32", {.bytes = TensorFactory::Words(n) + bytes}, [&b = m.b, floats, y] { return b.Copy(floats, y); }},
      {"sum of two", {.bytes = 3 * bytes}, [&b = m.b, a, x, y] { return b.Add(a, x, y); }},
      {"relu", {.bytes = 2 * bytes}, [&b = m.b, x, y] { return b.Activate(Activation::kRelu, x, y); }},
      {"gelu", {.bytes = 2 * bytes}, [&b = m.b, x, y] { return b.Activate(Activation::kGelu, x, y); }},
      // From x and dy alone.
      {"gelu gradient",
       {.bytes = 3 * bytes},
       [&b = m.b, a, x, dy, y] { return b.ActivateBackward(Activation::kGelu, x, a, dy, y); }},
      {"dropout", {.bytes = 2 * bytes}, [&b = m.b, x, y] { return b.Dropout({.rate = 0.1, .seed = 3}, x, y); }},
  };
}

Cases Products(TensorFactory& m) {
  Cases cases;
  for (int64_t side : {256, 1024, 4096}) {
    const int64_t n = std::min(side, 64 * m.scale);
    const DeviceTensor x = m.Activations({n, n}), w = m.Activations({n, n}), y = m.Activations({n, n});
    const double flops = 2.0 * static_cast<double>(n * n * n);
    cases.push_back({absl::StrCat("product ", n), {flops, 3 * m.Activation(n * n)}, [&b = m.b, x, w, y] {
                       return b.Gemm(false, true, 1, x, w, 0, y);
                     }});
  }
  return cases;
}

// A transformer's first layer after attention: to four times the width.
Cases LinearLayers(TensorFactory& m) {
  const int64_t n = 128 * m.scale, inputs = std::min<int64_t>(1024, 64 * m.scale), units = 4 * inputs;
  const DeviceTensor x = m.Activations({n, inputs}), dx = m.Activations({n, inputs}), dy = m.Activations({n, units}),
                     y = m.Activations({n, units}), w = m.Activations({units, inputs}), bias = m.Floats({units}),
                     dw = m.Floats({units, inputs}), dbias = m.Floats({units});
  const double flops = 2.0 * static_cast<double>(n * inputs * units);
  const double rows = m.Activation(n * (inputs + units)), weights = m.Activation(units * inputs);
  return {
      {"linear", {flops, rows + weights}, [&b = m.b, x, w, bias, y] { return b.Linear(x, w, bias, y); }},
      {"linear, gradient",
       {2 * flops, rows + m.Activation(n * inputs) + weights + TensorFactory::Words(units * inputs)},
       [&b = m.b, x, w, dy, dx, dw, dbias] { return b.LinearBackward(x, w, dy, false, dx, dw, dbias); }},
  };
}

Cases Rows(TensorFactory& m) {
  const int64_t rows = 1024 * m.scale, columns = 1024;
  const DeviceTensor x = m.Activations({rows, columns}), dy = m.Activations({rows, columns}),
                     y = m.Activations({rows, columns}), gain = m.Floats({columns}), bias = m.Floats({columns}),
                     dgain = m.Floats({columns}), dbias = m.Floats({columns}), mean = m.Floats({rows}),
                     inverse = m.Floats({rows});
  const double bytes = m.Activation(rows * columns);
  return {
      {"bias", {.bytes = 2 * bytes}, [&b = m.b, bias, y] { return b.AddBias(bias, y); }},
      {"bias gradient", {.bytes = bytes}, [&b = m.b, dbias, dy] { return b.BiasGradient(dy, false, dbias); }},
      {"layer norm",
       {.bytes = 2 * bytes},
       [=, &b = m.b] { return b.LayerNorm(1e-5f, x, gain, bias, y, mean, inverse); }},
      {"layer norm gradient",
       {.bytes = 3 * bytes},
       [=, &b = m.b] { return b.LayerNormBackward(x, gain, mean, inverse, dy, false, false, y, dgain, dbias); }},
  };
}

Cases Losses(TensorFactory& m) {
  const int64_t rows = 1024 * m.scale, columns = 1024;
  const DeviceTensor logits = m.Floats({rows, columns}), dlogits = m.Floats({rows, columns}),
                     classes = m.Indices({rows}, columns), sums = m.Zeros({2}, ElementType::kFloat64);
  return {{"softmax loss", {.bytes = 2 * TensorFactory::Words(rows * columns)}, [=, &b = m.b] {
             return b.SoftmaxCrossEntropy(logits, classes, 1, dlogits, sums);
           }}};
}

Cases Encoding(TensorFactory& m) {
  const int64_t n = m.scale << 20;
  const DeviceTensor x = m.Floats({n}), kept = m.Floats({n});
  Cases cases;
  for (v1::Codec codec : AllCodecs()) {
    if (codec == v1::NONE || TraitsOf(codec).gpu == GpuEncoder::kNone) continue;
    const EncodedRange range = {.codec = {codec, 0.01}, .count = n, .seed = 1};
    const int64_t words = MaxEncodedWords(range.codec, n);
    const DeviceTensor encoded = m.Zeros({words}, ElementType::kInt32);
    const DeviceTensor residual = HasResidual(codec) ? kept : DeviceTensor();
    // The residual is read and written.
    const double bytes = TensorFactory::Words(n * (HasResidual(codec) ? 3 : 1) + words);
    cases.push_back({absl::StrCat("encode, ", absl::AsciiStrToLower(v1::Codec_Name(codec))),
                     {.bytes = bytes},
                     [=, &b = m.b] { return b.Encode(range, x, residual, encoded); }});
  }
  return cases;
}

Cases Convolutions(TensorFactory& m) {
  const int64_t batch = 16 * m.scale;
  const Conv2dGeometry conv = {
      .channels = 64, .height = 32, .width = 32, .filters = 64, .kernel = 3, .stride = 1, .padding = 1};
  const DeviceTensor x = m.Activations(conv.InputShape(batch)), dx = m.Activations(conv.InputShape(batch)),
                     y = m.Activations(conv.OutputShape(batch)), dy = m.Activations(conv.OutputShape(batch)),
                     w = m.Activations(conv.WeightShape()), dw = m.Floats(conv.WeightShape());
  const int64_t elements = NumElements(conv.InputShape(batch));
  // Weights are next to nothing.
  const Work work = {2.0 * static_cast<double>(elements) * 64 * 9, 2 * m.Activation(elements)};
  return {
      {"convolution 3x3", work, [=, &b = m.b] { return b.Conv2d(conv, x, w, y); }},
      {"convolution, data gradient", work, [=, &b = m.b] { return b.Conv2dBackwardData(conv, dy, w, dx); }},
      {"convolution, weight gradient", work, [=, &b = m.b] { return b.Conv2dBackwardWeight(conv, x, dy, false, dw); }},
  };
}

Cases ImageNorms(TensorFactory& m) {
  const int64_t batch = 16 * m.scale, channels = 64, groups = 4;
  const Shape shape = {batch, channels, 32, 32};
  const DeviceTensor x = m.Activations(shape), dy = m.Activations(shape), y = m.Activations(shape),
                     gain = m.Floats({channels}), bias = m.Floats({channels}), dgain = m.Floats({channels}),
                     dbias = m.Floats({channels}), mean = m.Floats({batch, groups}),
                     inverse = m.Floats({batch, groups});
  const double bytes = m.Activation(NumElements(shape));
  return {
      {"group norm",
       {.bytes = 2 * bytes},
       [=, &b = m.b] { return b.GroupNorm(groups, 1e-5f, x, gain, bias, y, mean, inverse); }},
      {"group norm gradient",
       {.bytes = 3 * bytes},
       [=, &b = m.b] { return b.GroupNormBackward(groups, x, gain, mean, inverse, dy, false, y, dgain, dbias); }},
  };
}

Cases Pools(TensorFactory& m) {
  const int64_t batch = 16 * m.scale;
  const Pool2dGeometry pool = {.channels = 64, .height = 32, .width = 32, .window = 2, .stride = 2};
  const DeviceTensor x = m.Activations(pool.InputShape(batch)), dx = m.Activations(pool.InputShape(batch)),
                     y = m.Activations(pool.OutputShape(batch)), dy = m.Activations(pool.OutputShape(batch)),
                     argmax = m.Zeros(pool.OutputShape(batch), ElementType::kInt32);
  const int64_t outputs = NumElements(pool.OutputShape(batch));
  const double average = m.Activation(5 * outputs), largest = average + TensorFactory::Words(outputs);
  return {
      {"max pool 2x2", {.bytes = largest}, [=, &b = m.b] { return b.MaxPool2d(pool, x, y, argmax); }},
      {"max pool, gradient", {.bytes = largest}, [=, &b = m.b] { return b.MaxPool2dBackward(pool, dy, argmax, dx); }},
      {"average pool 2x2", {.bytes = average}, [=, &b = m.b] { return b.AveragePool2d(pool, x, y); }},
      {"average pool, gradient", {.bytes = average}, [=, &b = m.b] { return b.AveragePool2dBackward(pool, dy, dx); }},
  };
}

Cases Embeddings(TensorFactory& m) {
  const int64_t entries = 256 * m.scale, width = 768, tokens = 1024 * m.scale;
  const DeviceTensor table = m.Floats({entries, width}), dtable = m.Floats({entries, width}),
                     indices = m.Indices({tokens}, entries), y = m.Activations({tokens, width}),
                     dy = m.Activations({tokens, width});
  // Every row of the table once.
  const double bytes = m.Activation(tokens * width) + TensorFactory::Words(tokens + entries * width);
  return {
      {"embedding", {.bytes = bytes}, [=, &b = m.b] { return b.Embed(table, indices, y); }},
      {"embedding, gradient", {.bytes = bytes}, [=, &b = m.b] { return b.EmbedBackward(indices, dy, false, dtable); }},
  };
}

Cases Attentions(TensorFactory& m) {
  Cases cases;
  for (int64_t length : {512, 1024}) {
    const AttentionGeometry g = {.sequence = std::min(length, 64 * m.scale), .heads = 12, .head_width = 64};
    const int64_t examples = std::max<int64_t>(1, 256 * m.scale / g.sequence);
    const DeviceTensor qkv = m.Activations(g.InputShape(examples)), dqkv = m.Activations(g.InputShape(examples)),
                       y = m.Activations(g.OutputShape(examples)), dy = m.Activations(g.OutputShape(examples)),
                       lse = m.Floats(g.LogSumExpShape(examples));
    const int64_t elements = examples * g.sequence * g.width();
    // Half of the scores; two products with them forward, and five backward.
    const double product = static_cast<double>(elements * g.sequence);
    const std::string name = absl::StrCat("causal attention over ", g.sequence);
    cases.push_back(
        {name, {2 * product, 4 * m.Activation(elements)}, [=, &b = m.b] { return b.CausalAttention(g, qkv, y, lse); }});
    cases.push_back({name + ", gradient", {5 * product, 8 * m.Activation(elements)}, [=, &b = m.b] {
                       return b.CausalAttentionBackward(g, qkv, y, lse, dy, dqkv);
                     }});
  }
  return cases;
}

}  // namespace

std::vector<OperationGroup> OperationGroups(Backend* backend, int64_t scale) {
  const std::vector<std::pair<std::string, Cases (*)(TensorFactory&)>> groups = {
      {"copies", Copies},
      {"elements", Elements},
      {"products", Products},
      {"linear layers", LinearLayers},
      {"rows", Rows},
      {"losses", Losses},
      {"encoding", Encoding},
      {"convolutions", Convolutions},
      {"image norms", ImageNorms},
      {"pools", Pools},
      {"embeddings", Embeddings},
      {"attention", Attentions},
  };
  std::vector<OperationGroup> result;
  for (const auto& [name, make] : groups) {
    result.push_back({name, [backend, scale, make = make]() -> absl::StatusOr<Cases> {
                        TensorFactory factory(backend, scale);
                        Cases cases = make(factory);
                        if (!factory.status().ok()) return factory.status();
                        return cases;
                      }});
  }
  return result;
}

void TimeGroups(Backend& backend, const std::vector<OperationGroup>& groups, const std::vector<std::string>& only,
                const DeviceRates& rates, const TimingOptions& options, CaseReport* report) {
  const auto wanted = [&](const std::string& name) {
    return only.empty() || std::any_of(only.begin(), only.end(),
                                       [&](const std::string& part) { return absl::StrContains(name, part); });
  };
  for (const OperationGroup& group : groups) {
    absl::StatusOr<Cases> cases = group.build();
    if (!cases.ok()) report->Fail(group.name, cases.status());
    for (const OperationCase& one : cases.ok() ? *cases : Cases()) {
      if (!wanted(one.name)) continue;
      const absl::StatusOr<double> seconds = TimeOperation(backend, one.run, options);
      if (!seconds.ok()) {
        report->Fail(one.name, seconds.status());
        continue;
      }
      const double floor = FloorSeconds(one.work, rates);
      report->Add({one.name,
                   {{"microseconds", *seconds * 1e6},
                    {"gb_per_s", one.work.bytes / *seconds / 1e9},
                    {"tflop_per_s", one.work.flops / *seconds / 1e12},
                    {"floor_microseconds", floor * 1e6},
                    {"floor_to_time", floor / *seconds}}});
    }
  }
}

}  // namespace rubato::bench
