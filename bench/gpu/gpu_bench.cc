// Rates of a backend's operations: products in TFLOP/s, everything else in GB/s of what it has to read and write,
// beside that of a plain copy on the device, which is the floor for what memory limits.
#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "bench/bench_output.h"
#include "bench/gpu/device_timing.h"
#include "common/status.h"
#include "kernels/backend.h"
#include "kernels/backend_cpu.h"
#include "kernels/backend_cuda.h"
#include "kernels/codec/codec.h"

namespace rubato::bench {
namespace {

struct Measured {
  std::string name;
  // Of one call.
  double bytes = 0;
  double operations = 0;
  Operation run;
};

class Suite {
 public:
  Suite(Backend* backend, int64_t scale) : backend_(*backend), scale_(scale) {}

  // ResourceExhausted: the tensors do not fit.
  absl::Status Build() {
    RUBATO_RETURN_IF_ERROR(AddCopies());
    RUBATO_RETURN_IF_ERROR(AddActivations());
    RUBATO_RETURN_IF_ERROR(AddProducts());
    RUBATO_RETURN_IF_ERROR(AddRows());
    RUBATO_RETURN_IF_ERROR(AddMessages());
    return AddImagesAndSequences();
  }

  absl::StatusOr<std::vector<BenchCase>> Run(int rounds) {
    std::vector<BenchCase> results;
    double copy_rate = 0;
    for (const Measured& measured : measured_) {
      absl::StatusOr<double> seconds = TimeOperation(backend_, measured.run, rounds);
      if (!seconds.ok()) return Annotate(seconds.status(), measured.name);
      const double rate = measured.bytes / *seconds / 1e9;
      if (copy_rate == 0) copy_rate = rate;
      results.push_back({measured.name,
                         {{"microseconds", *seconds * 1e6},
                          {"gb_per_s", rate},
                          {"share_of_device_copy", rate / copy_rate},
                          {"tflop_per_s", measured.operations / *seconds / 1e12}}});
    }
    return results;
  }

 private:
  absl::StatusOr<DeviceTensor> Tensor(Shape shape, ElementType type = ElementType::kFloat32) {
    RUBATO_ASSIGN_OR_RETURN(DeviceTensor tensor, backend_.Allocate(std::move(shape), type));
    // Not zeros, with which products draw less power and run faster.
    if (type == ElementType::kFloat32 || type == backend_.ActivationType()) {
      RUBATO_RETURN_IF_ERROR(backend_.Fill(1, tensor));
      RUBATO_RETURN_IF_ERROR(backend_.Dropout({.rate = 0.5, .seed = ++seed_, .stream = 1}, tensor, tensor));
    }
    return tensor;
  }
  absl::StatusOr<DeviceTensor> Activations(Shape shape) { return Tensor(std::move(shape), backend_.ActivationType()); }
  double ActivationBytes() const { return static_cast<double>(ElementBytes(backend_.ActivationType())); }
  void Add(std::string name, double bytes, double operations, Operation run) {
    measured_.push_back({std::move(name), bytes, operations, std::move(run)});
  }

  absl::Status AddCopies() {
    const int64_t n = scale_ * (int64_t{1} << 20);
    const double bytes = 4.0 * static_cast<double>(n);
    RUBATO_ASSIGN_OR_RETURN(DeviceTensor x, Tensor({n}));
    RUBATO_ASSIGN_OR_RETURN(DeviceTensor y, Tensor({n}));
    RUBATO_ASSIGN_OR_RETURN(std::shared_ptr<void> host, backend_.AllocateHost(4 * n));
    Add("copy on the device", 2 * bytes, 0, [this, x, y] { return backend_.Copy(x, y); });
    Add("copy to the device", bytes, 0, [this, x, n, host] { return backend_.CopyToDevice(x, 0, n, host.get()); });
    Add("copy to the host", bytes, 0, [this, x, n, host] { return backend_.CopyToHost(x, 0, n, host.get()); });
    Add("axpy", 3 * bytes, 0, [this, x, y] { return backend_.Axpy(1e-9f, x, y); });
    RUBATO_ASSIGN_OR_RETURN(DeviceTensor sum, Tensor({1}, ElementType::kFloat64));
    Add("sum of squares", bytes, 0, [this, x, sum] { return backend_.SumOfSquares(x, false, sum); });
    return absl::OkStatus();
  }

  absl::Status AddActivations() {
    const int64_t n = scale_ * (int64_t{1} << 20);
    const double bytes = ActivationBytes() * static_cast<double>(n);
    RUBATO_ASSIGN_OR_RETURN(DeviceTensor floats, Tensor({n}));
    RUBATO_ASSIGN_OR_RETURN(DeviceTensor x, Activations({n}));
    RUBATO_ASSIGN_OR_RETURN(DeviceTensor y, Activations({n}));
    Add("from float32", 4.0 * static_cast<double>(n) + bytes, 0,
        [this, floats, y] { return backend_.Copy(floats, y); });
    Add("sum of two", 3 * bytes, 0, [this, x, y] { return backend_.Add(x, x, y); });
    Add("relu", 2 * bytes, 0, [this, x, y] { return backend_.Activate(Activation::kRelu, x, y); });
    Add("gelu", 2 * bytes, 0, [this, x, y] { return backend_.Activate(Activation::kGelu, x, y); });
    Add("gelu gradient", 3 * bytes, 0,
        [this, x, y] { return backend_.ActivateBackward(Activation::kGelu, x, x, x, y); });
    Add("dropout", 2 * bytes, 0, [this, x, y] { return backend_.Dropout({.rate = 0.1, .seed = 3}, x, y); });
    return absl::OkStatus();
  }

  absl::Status AddProducts() {
    for (int64_t size : {256, 1024, 4096}) {
      const int64_t n = std::min(size, 64 * scale_);
      RUBATO_ASSIGN_OR_RETURN(DeviceTensor a, Activations({n, n}));
      RUBATO_ASSIGN_OR_RETURN(DeviceTensor b, Activations({n, n}));
      RUBATO_ASSIGN_OR_RETURN(DeviceTensor c, Activations({n, n}));
      const double cube = static_cast<double>(n) * static_cast<double>(n) * static_cast<double>(n);
      Add(absl::StrCat("product ", n), 3 * ActivationBytes() * static_cast<double>(n * n), 2 * cube,
          [this, a, b, c] { return backend_.Gemm(false, true, 1, a, b, 0, c); });
    }
    return absl::OkStatus();
  }

  absl::Status AddRows() {
    const int64_t rows = scale_ * 128, columns = 1024;
    const double elements = static_cast<double>(rows * columns), bytes = ActivationBytes() * elements;
    RUBATO_ASSIGN_OR_RETURN(DeviceTensor x, Activations({rows, columns}));
    RUBATO_ASSIGN_OR_RETURN(DeviceTensor y, Activations({rows, columns}));
    RUBATO_ASSIGN_OR_RETURN(DeviceTensor logits, Tensor({rows, columns}));
    RUBATO_ASSIGN_OR_RETURN(DeviceTensor dlogits, Tensor({rows, columns}));
    RUBATO_ASSIGN_OR_RETURN(DeviceTensor gain, Tensor({columns}));
    RUBATO_ASSIGN_OR_RETURN(DeviceTensor bias, Tensor({columns}));
    RUBATO_ASSIGN_OR_RETURN(DeviceTensor mean, Tensor({rows}));
    RUBATO_ASSIGN_OR_RETURN(DeviceTensor inverse, Tensor({rows}));
    RUBATO_ASSIGN_OR_RETURN(DeviceTensor classes, Tensor({rows}, ElementType::kInt32));
    RUBATO_ASSIGN_OR_RETURN(DeviceTensor sums, Tensor({2}, ElementType::kFloat64));
    Add("bias", 2 * bytes, 0, [this, bias, y] { return backend_.AddBias(bias, y); });
    Add("bias gradient", bytes, 0, [this, bias, x] { return backend_.BiasGradient(x, false, bias); });
    Add("layer norm", 2 * bytes, 0, [=, this] { return backend_.LayerNorm(1e-5f, x, gain, gain, y, mean, inverse); });
    Add("layer norm gradient", 5 * bytes, 0,
        [=, this] { return backend_.LayerNormBackward(x, gain, mean, inverse, x, false, false, y, bias, bias); });
    Add("softmax loss", 8 * elements, 0,
        [=, this] { return backend_.SoftmaxCrossEntropy(logits, classes, 1, dlogits, sums); });
    return absl::OkStatus();
  }

  absl::Status AddMessages() {
    const int64_t n = scale_ * (int64_t{1} << 18);
    RUBATO_ASSIGN_OR_RETURN(DeviceTensor x, Tensor({n}));
    RUBATO_ASSIGN_OR_RETURN(DeviceTensor kept_back, Tensor({n}));
    for (v1::Codec codec : {v1::BF16, v1::FP16, v1::INT8, v1::TOP_K, v1::ONE_BIT}) {
      const EncodedRange range = {.codec = {codec, 0.01}, .count = n, .seed = 1};
      const int64_t words = MaxEncodedWords(range.codec, n);
      RUBATO_ASSIGN_OR_RETURN(DeviceTensor message, Tensor({words}, ElementType::kInt32));
      const DeviceTensor residual = HasResidual(codec) ? kept_back : DeviceTensor();
      // What is kept back is read and written.
      const double bytes = 4.0 * static_cast<double>(n * (residual.empty() ? 1 : 3) + words);
      Add(absl::StrCat("message, ", absl::AsciiStrToLower(v1::Codec_Name(codec))), bytes, 0,
          [this, range, x, residual, message] { return backend_.Encode(range, x, residual, message); });
    }
    return absl::OkStatus();
  }

  absl::Status AddImagesAndSequences() {
    const int64_t batch = scale_ / 8 + 1;
    const Conv2dGeometry conv = {
        .channels = 64, .height = 32, .width = 32, .filters = 64, .kernel = 3, .stride = 1, .padding = 1};
    RUBATO_ASSIGN_OR_RETURN(DeviceTensor x, Activations(conv.InputShape(batch)));
    RUBATO_ASSIGN_OR_RETURN(DeviceTensor w, Activations(conv.WeightShape()));
    RUBATO_ASSIGN_OR_RETURN(DeviceTensor dw, Tensor(conv.WeightShape()));
    RUBATO_ASSIGN_OR_RETURN(DeviceTensor y, Activations(conv.OutputShape(batch)));
    const double bytes = 2 * ActivationBytes() * static_cast<double>(x.elements());
    const double operations = 2.0 * static_cast<double>(y.elements()) * 64 * 9;
    Add("convolution 3x3", bytes, operations, [=, this] { return backend_.Conv2d(conv, x, w, y); });
    Add("convolution, data gradient", bytes, operations,
        [=, this] { return backend_.Conv2dBackwardData(conv, y, w, x); });
    Add("convolution, weight gradient", bytes, operations,
        [=, this] { return backend_.Conv2dBackwardWeight(conv, x, y, false, dw); });

    const AttentionGeometry attention = {.sequence = 1024, .heads = 12, .head_width = 64};
    const int64_t examples = scale_ / 64 + 1;
    RUBATO_ASSIGN_OR_RETURN(DeviceTensor qkv, Activations(attention.InputShape(examples)));
    RUBATO_ASSIGN_OR_RETURN(DeviceTensor out, Activations(attention.OutputShape(examples)));
    RUBATO_ASSIGN_OR_RETURN(DeviceTensor lse, Tensor(attention.LogSumExpShape(examples)));
    RUBATO_ASSIGN_OR_RETURN(DeviceTensor dqkv, Activations(attention.InputShape(examples)));
    // Half of the square, twice.
    const double products = 2.0 * static_cast<double>(examples * 12 * 1024) * 1024 * 64;
    const double touched = 4 * ActivationBytes() * static_cast<double>(out.elements());
    Add("causal attention", touched, products,
        [=, this] { return backend_.CausalAttention(attention, qkv, out, lse); });
    Add("causal attention, gradient", 2 * touched, 2.5 * products,
        [=, this] { return backend_.CausalAttentionBackward(attention, qkv, out, lse, out, dqkv); });
    return absl::OkStatus();
  }

  Backend& backend_;
  const int64_t scale_;
  uint64_t seed_ = 0;
  std::vector<Measured> measured_;
};

absl::Status Run(const std::string& device, MatrixPrecision precision, int64_t scale, int rounds) {
  std::unique_ptr<Backend> backend;
  if (device == "cpu") {
    RUBATO_ASSIGN_OR_RETURN(backend, CreateCpuBackend({}));
  } else {
    RUBATO_ASSIGN_OR_RETURN(backend, CreateCudaBackend({.precision = precision}));
  }
  std::printf("# %s\n", backend->Name().c_str());
  Suite suite(backend.get(), scale);
  RUBATO_RETURN_IF_ERROR(suite.Build());
  RUBATO_ASSIGN_OR_RETURN(const std::vector<BenchCase> results, suite.Run(rounds));
  PrintCases(results);
  return absl::OkStatus();
}

int Main(int argc, char** argv) {
  CLI::App app("Rates of a backend's operations");
  std::string device = "cuda";
  MatrixPrecision precision = MatrixPrecision::kFloat32;
  int64_t scale = 64;
  int rounds = 15;
  const std::map<std::string, MatrixPrecision> precisions = {{"fp32", MatrixPrecision::kFloat32},
                                                             {"tf32", MatrixPrecision::kTf32},
                                                             {"bf16", MatrixPrecision::kBf16},
                                                             {"fp16", MatrixPrecision::kFp16}};
  app.add_option("--device", device, "cuda, or cpu")->capture_default_str()->check(CLI::IsMember({"cuda", "cpu"}));
  app.add_option("--precision", precision, "Of products on a card")->transform(CLI::CheckedTransformer(precisions));
  app.add_option("--scale", scale, "Sizes: tensors of so many million elements")
      ->capture_default_str()
      ->check(CLI::Range(1, 4096));
  app.add_option("--rounds", rounds, "Repetitions, of which the median counts")
      ->capture_default_str()
      ->check(CLI::Range(1, 10000));
  CLI11_PARSE(app, argc, argv);
  const absl::Status status = Run(device, precision, scale, rounds);
  if (status.ok()) return 0;
  std::fprintf(stderr, "gpu_bench: %s\n", status.ToString().c_str());
  return 1;
}

}  // namespace
}  // namespace rubato::bench

int main(int argc, char** argv) { return rubato::bench::Main(argc, argv); }
