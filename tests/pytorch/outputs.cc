// outputs write FOLDER: weights, an input and its output of each model, for PyTorch.
// outputs compare FOLDER: takes the weights that PyTorch wrote, and has to compute its outputs.
#include <google/protobuf/text_format.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cli/export/safetensors.h"
#include "common/random.h"
#include "common/status.h"
#include "common/storage/file.h"
#include "common/storage/safetensors_file.h"
#include "kernels/cpu/cpu_backend.h"
#include "tests/pytorch/models.h"
#include "worker/nn/model.h"

namespace rubato::pytorch {
namespace {

constexpr int64_t kExamples = 3;
constexpr double kTolerance = 1e-4;

struct Running {
  ModelSpec spec;
  std::unique_ptr<Backend> backend;
  std::unique_ptr<worker::Model> model;

  float* Weight(int tensor) const { return backend->HostPointer(model->weight(tensor)); }
};

absl::StatusOr<Running> Build(const NamedModel& named) {
  v1::ModelConfig config;
  if (!google::protobuf::TextFormat::ParseFromString(named.config, &config)) {
    return absl::InvalidArgumentError(absl::StrCat(named.name, ": no ModelConfig"));
  }
  Running running;
  RUBATO_ASSIGN_OR_RETURN(running.spec, BuildModelSpec(config));
  RUBATO_ASSIGN_OR_RETURN(running.backend, CreateCpuBackend({}));
  RUBATO_ASSIGN_OR_RETURN(running.model,
                          worker::Model::Create(running.spec, running.backend.get(), {.max_batch = kExamples}));
  return running;
}

// Of all examples, without dropout.
absl::StatusOr<std::vector<float>> Outputs(const Running& running, const std::vector<float>& inputs) {
  const std::vector<float> targets(kExamples * NumElements(running.spec.output));
  RUBATO_RETURN_IF_ERROR(running.model->SetInputs(inputs.data(), targets.data(), kExamples));
  RUBATO_RETURN_IF_ERROR(running.model->EvaluateBatch().status());
  const float* const outputs = running.backend->HostPointer(running.model->output());
  return std::vector<float>(outputs, outputs + targets.size());
}

Shape BatchOf(Shape shape) {
  shape.insert(shape.begin(), kExamples);
  return shape;
}

absl::Status WriteTensors(const std::string& path, std::vector<NamedTensor> tensors) {
  Checkpoint checkpoint;
  checkpoint.tensors = std::move(tensors);
  std::string bytes = SafetensorsHeader(checkpoint);
  for (const NamedTensor& tensor : checkpoint.tensors) {
    bytes.append(reinterpret_cast<const char*>(tensor.values.data()), sizeof(float) * tensor.values.size());
  }
  return WriteFileAtomically(path, bytes);
}

absl::Status Write(const NamedModel& named, const std::string& folder) {
  RUBATO_ASSIGN_OR_RETURN(const Running running, Build(named));
  const ModelSpec& spec = running.spec;
  Random random(1, StreamId(named.name));
  std::vector<NamedTensor> weights;
  for (size_t i = 0; i < spec.tensors.size(); ++i) {
    NamedTensor tensor = {.name = spec.tensors[i].name, .shape = spec.tensors[i].shape, .values = {}};
    tensor.values.resize(NumElements(tensor.shape));
    for (float& value : tensor.values) value = 0.5f * static_cast<float>(random.Normal());
    std::copy(tensor.values.begin(), tensor.values.end(), running.Weight(static_cast<int>(i)));
    weights.push_back(std::move(tensor));
  }
  std::vector<float> inputs(kExamples * NumElements(spec.input));
  for (float& input : inputs) {
    input =
        static_cast<float>(spec.vocabulary > 0 ? static_cast<double>(random.Below(spec.vocabulary)) : random.Normal());
  }
  RUBATO_ASSIGN_OR_RETURN(std::vector<float> outputs, Outputs(running, inputs));
  const std::string base = JoinPath(folder, named.name);
  RUBATO_RETURN_IF_ERROR(WriteTensors(base + ".safetensors", std::move(weights)));
  return WriteTensors(base + ".run.safetensors", {{"input", BatchOf(spec.input), std::move(inputs)},
                                                  {"output", BatchOf(spec.output), std::move(outputs)}});
}

absl::Status Compare(const NamedModel& named, const std::string& folder) {
  RUBATO_ASSIGN_OR_RETURN(const Running running, Build(named));
  const std::string base = JoinPath(folder, named.name);
  RUBATO_ASSIGN_OR_RETURN(SafetensorsFile weights, SafetensorsFile::Open(base + ".torch.safetensors"));
  RUBATO_RETURN_IF_ERROR(weights.CheckFits(running.spec));
  for (size_t i = 0; i < running.spec.tensors.size(); ++i) {
    const TensorSpec& tensor = running.spec.tensors[i];
    RUBATO_RETURN_IF_ERROR(
        weights.Read(tensor.name, 0, NumElements(tensor.shape), running.Weight(static_cast<int>(i))));
  }
  RUBATO_ASSIGN_OR_RETURN(SafetensorsFile run, SafetensorsFile::Open(base + ".torch_run.safetensors"));
  std::vector<float> inputs(kExamples * NumElements(running.spec.input));
  std::vector<float> expected(kExamples * NumElements(running.spec.output));
  RUBATO_RETURN_IF_ERROR(run.Read("input", 0, static_cast<int64_t>(inputs.size()), inputs.data()));
  RUBATO_RETURN_IF_ERROR(run.Read("output", 0, static_cast<int64_t>(expected.size()), expected.data()));
  RUBATO_ASSIGN_OR_RETURN(const std::vector<float> outputs, Outputs(running, inputs));
  double difference = 0;
  for (size_t i = 0; i < outputs.size(); ++i)
    difference = std::max<double>(difference, std::abs(outputs[i] - expected[i]));
  std::cout << named.name << ": takes PyTorch's tensors; outputs differ by at most " << difference << std::endl;
  if (difference < kTolerance) return absl::OkStatus();
  return absl::InternalError(absl::StrCat(named.name, ": the outputs are not PyTorch's"));
}

}  // namespace
}  // namespace rubato::pytorch

int main(int argc, char** argv) {
  const std::string mode = argc == 3 ? argv[1] : "";
  if (mode != "write" && mode != "compare") {
    std::cerr << "usage: outputs write|compare FOLDER" << std::endl;
    return 2;
  }
  for (const rubato::pytorch::NamedModel& model : rubato::pytorch::Models()) {
    const absl::Status status =
        mode == "write" ? rubato::pytorch::Write(model, argv[2]) : rubato::pytorch::Compare(model, argv[2]);
    if (status.ok()) continue;
    std::cerr << status << std::endl;
    return 1;
  }
  return 0;
}
