#include "bench/gpu/device_flags.h"

#include <map>

#include "kernels/backend_cuda.h"
#include "kernels/cpu/cpu_backend.h"

namespace rubato::bench {
namespace {

const std::map<std::string, MatrixPrecision> kPrecisions = {{"fp32", MatrixPrecision::kFloat32},
                                                            {"tf32", MatrixPrecision::kTf32},
                                                            {"bf16", MatrixPrecision::kBf16},
                                                            {"fp16", MatrixPrecision::kFp16}};

}  // namespace

void AddDeviceFlags(CLI::App* app, DeviceFlags* flags) {
  app->option_defaults()->always_capture_default();
  app->add_option("--device", flags->device, "cuda or cpu")->check(CLI::IsMember({"cuda", "cpu"}));
  app->add_option("--precision", flags->precision, "fp32, tf32, bf16 or fp16, on a GPU")
      ->check(CLI::IsMember({"fp32", "tf32", "bf16", "fp16"}));
  app->add_flag("--no-graphs", flags->no_graphs, "every kernel is launched by itself");
  app->add_flag("--no-cudnn", flags->no_cudnn, "convolutions are products of im2col matrices");
  app->add_flag("--no-fused-attention", flags->no_fused_attention, "attention's scores go through memory");
  app->add_option("--rounds", flags->timing.rounds, "timed rounds, of which the median counts")
      ->check(CLI::Range(1, 1000));
  app->add_option("--round-seconds", flags->timing.round_seconds, "of a round, at least")->check(CLI::Range(0.0, 60.0));
  app->add_option("--warm-up-seconds", flags->timing.warm_up_seconds, "before the first round, at least")
      ->check(CLI::Range(0.0, 60.0));
}

absl::StatusOr<std::unique_ptr<Backend>> CreateBackend(const DeviceFlags& flags) {
  if (flags.device == "cpu") return CreateCpuBackend({});
  return CreateCudaBackend({.precision = kPrecisions.at(flags.precision),
                            .graphs = !flags.no_graphs,
                            .cudnn = !flags.no_cudnn,
                            .fused_attention = !flags.no_fused_attention});
}

}  // namespace rubato::bench
