// The C interface, called with anything in any order, beside a sidecar that answers well or badly: every call ends with
// a result that the header names, one below zero has a text, and no more is written than the caller has room for.
//
// Input: how the sidecar answers (a length and its bytes, see scripted_sidecar.h), then the calls: a number each, and
// what it is called with. If it begins with 255, the rest is a model as it comes to the sidecar instead.
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "client/link/model.h"
#include "client/link/tensor_layout.h"
#include "client/rubato_client.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/script.h"
#include "tests/fuzz/scripted_sidecar.h"

namespace rubato::client {
namespace {

constexpr int kCallsMax = 64;
constexpr size_t kTensorsMax = 3;
constexpr uint8_t kModelAlone = 255;

// A model that lives as long as the call that defines it.
struct GivenModel {
  explicit GivenModel(Script& script) {
    const size_t tensor_count = script.Below(kTensorsMax + 1);
    names.reserve(2 * kTensorsMax);
    shapes.reserve(kTensorsMax);
    for (size_t i = 0; i < tensor_count; ++i) {
      names.push_back("t" + script.Text());
      shapes.emplace_back();
      for (size_t left = script.Below(4); left > 0; --left) shapes.back().push_back(script.Size<int64_t>());
      tensors.push_back({.name = names.back().c_str(),
                         .shape = shapes.back().data(),
                         .dimensions = static_cast<uint32_t>(shapes.back().size()),
                         .group = script.Size<uint32_t>()});
    }
    for (size_t left = script.Below(kTensorsMax); left > 0; --left) {
      names.push_back("r" + script.Text());
      rubato_table table = {};
      table.name = names.back().c_str();
      table.dimension = script.Size<int64_t>();
      table.algorithm = static_cast<rubato_table_algorithm>(script.Below(7));
      table.learning_rate = script.Below(2) == 0 ? 0.1 : script.Number<double>();
      table.initial_bound = script.Below(2) == 0 ? 0.01 : script.Number<double>();
      table.epsilon = 1e-6;
      table.beta1 = table.beta2 = table.beta = 0.5;
      table.shards = script.Size<uint32_t>();
      tables.push_back(table);
    }
    groups.resize(script.Below(3), {.learning_rate = 0.1, .momentum = 0.5, .beta1 = 0.9, .beta2 = 0.9, .rho = 0.9});
    if (!groups.empty() && script.Below(4) == 0) groups[0] = script.Number<rubato_hyperparameters>();
    model.struct_bytes = script.Below(8) == 7 ? script.Size<size_t>() : sizeof(model);
    model.tensors = tensors.data();
    model.tensor_count = static_cast<uint32_t>(tensors.size());
    model.groups = groups.data();
    model.group_count = static_cast<uint32_t>(groups.size());
    model.algorithm = static_cast<rubato_algorithm>(script.Below(10));
    model.tables = tables.data();
    model.table_count = static_cast<uint32_t>(tables.size());
    if (script.Below(4) == 0) {
      for (size_t i = 0; i < tables.size(); ++i) admission.push_back(script.Number<rubato_admission>());
      model.admission = admission.data();
    }
    model.leased_examples = script.Size<int64_t>();
    model.epochs = script.Size<int64_t>();
    if (script.Below(4) == 3) {
      for (size_t i = 0; i < tables.size(); ++i) {
        const auto number = [&] { return static_cast<rubato_number>(script.Below(3)); };
        row_formats.push_back({.precision = number(), .push = number(), .pull = number()});
      }
      model.row_formats = row_formats.data();
    }
  }

  std::vector<std::string> names;
  std::vector<std::vector<int64_t>> shapes;
  std::vector<rubato_tensor> tensors;
  std::vector<rubato_table> tables;
  std::vector<rubato_admission> admission;
  std::vector<rubato_row_format> row_formats;
  std::vector<rubato_hyperparameters> groups;
  rubato_model model = {};
};

class Calls {
 public:
  explicit Calls(Script& script) : script_(script) {}
  ~Calls() {
    if (client_ != nullptr) Check(rubato_close(client_, nullptr), true);
  }

  void Open() {
    rubato_options options = {};
    options.struct_bytes = sizeof(options);
    options.coordinator = "127.0.0.1:1";
    options.timeout_seconds = 1;
    const rubato_result result = rubato_open(&options, &client_);
    RUBATO_FUZZ_CHECK((result == RUBATO_OK) == (client_ != nullptr), result);
    if (result == RUBATO_OK) return;
    Check(result, true);
  }
  bool open() const { return client_ != nullptr; }

  void Next() {
    switch (script_.Below(26)) {
      case 0: {
        const GivenModel given(script_);
        if (!Check(rubato_define(client_, &given.model))) return;
        tensors_ = given.tensors.size();
        for (const rubato_table& table : given.tables) dimensions_.push_back(static_cast<size_t>(table.dimension));
        return;
      }
      case 1:
        Check(rubato_start(client_));
        return;
      case 2: {
        rubato_step step;
        if (Check(rubato_begin(client_, &step, Seconds()))) RUBATO_FUZZ_CHECK(step.step >= 0, step.step);
        return;
      }
      case 3:
        Check(rubato_await(client_, Tensor(), Seconds()));
        return;
      case 4: {
        const rubato_hyperparameters values = script_.Number<rubato_hyperparameters>();
        Check(rubato_set_hyperparameters(client_, script_.Size<uint32_t>(), &values));
        return;
      }
      case 5: {
        const uint64_t shard = script_.Size<uint64_t>();
        const int64_t begin = script_.Size<int64_t>();
        Check(rubato_set_slice(client_, shard, begin, script_.Size<int64_t>()));
        return;
      }
      case 6:
        Check(rubato_set_epoch(client_, script_.Number<double>()));
        return;
      case 7: {
        const uint32_t tensor = Tensor();
        Check(rubato_push(client_, tensor, script_.Size<uint64_t>()));
        return;
      }
      case 8:
        Check(rubato_push_absent(client_, Tensor()));
        return;
      case 9:
        Check(rubato_skip(client_));
        return;
      case 10:
        Check(rubato_report(client_, script_.Size<uint64_t>(), script_.Number<double>(), 1));
        return;
      case 11: {
        rubato_lease_range range;
        Check(rubato_lease(client_, &range, Seconds()));
        return;
      }
      case 12: {
        const std::string key = script_.Text(), value = script_.Text();
        Check(rubato_put(client_, key.c_str(), value.data(), value.size()));
        return;
      }
      case 13: {
        const std::string key = script_.Text();
        std::vector<char> value(script_.Byte());
        size_t bytes = 0;
        Check(rubato_get(client_, key.c_str(), value.data(), value.size(), &bytes, Seconds()));
        return;
      }
      case 14:
        Check(rubato_erase(client_, script_.Text().c_str()));
        return;
      case 15: {
        const std::string name = script_.Text();
        Check(rubato_barrier(client_, name.c_str(), script_.Size<uint32_t>(), Seconds()));
        return;
      }
      case 16:
        Check(rubato_switch(client_, static_cast<rubato_mode>(script_.Below(5)), script_.Size<int64_t>(), 0, 0,
                            Seconds()));
        return;
      case 17:
        Check(rubato_checkpoint(client_));
        return;
      case 18: {
        std::vector<char> directory(script_.Byte());
        Check(rubato_await_checkpoint(client_, directory.data(), directory.size(), Seconds()));
        return;
      }
      case 19:
        SetState();
        return;
      case 20: {
        std::vector<int64_t> updates(tensors_);
        const uint32_t slot = script_.Size<uint32_t>();
        Check(rubato_fetch_state(client_, slot, updates.data(), Seconds()));
        return;
      }
      case 21:
        Check(rubato_pause(client_, script_.Text().c_str()));
        return;
      case 22:
        Touch();
        return;
      default:
        Rows();
        return;
    }
  }

 private:
  // Whether it is RUBATO_OK.
  bool Check(rubato_result result, bool closed = false) {
    RUBATO_FUZZ_CHECK(result >= RUBATO_NOT_FOUND && result <= RUBATO_MOVED, result);
    const std::string text = rubato_error(closed ? nullptr : client_);
    RUBATO_FUZZ_CHECK(result >= 0 || !text.empty(), result);
    return result == RUBATO_OK;
  }

  // Few waits, as the sidecar answers at once or not at all.
  double Seconds() {
    constexpr double kSeconds[] = {0.001, 0.001, 0.001, 0, -1, std::numeric_limits<double>::quiet_NaN()};
    return kSeconds[script_.Below(std::size(kSeconds))];
  }
  uint32_t Tensor() {
    return script_.Below(8) == 7 ? script_.Number<uint32_t>() : static_cast<uint32_t>(script_.Below(kTensorsMax));
  }

  void SetState() {
    const uint32_t tensor = Tensor(), slot = script_.Size<uint32_t>();
    // As many values as the tensor has; none for a model that is not defined.
    static const std::vector<float> values(size_t{1} << 16);
    if (rubato_weights(client_, tensor) != nullptr && Elements(tensor) > values.size()) return;
    Check(rubato_set_state(client_, tensor, slot, values.data(), script_.Size<int64_t>()));
  }

  // The gradient of a tensor follows all weights.
  size_t Elements(uint32_t tensor) const {
    const float* next = rubato_weights(client_, tensor + 1);
    if (next == nullptr) next = rubato_gradient(client_, 0);
    return static_cast<size_t>(next - rubato_weights(client_, tensor));
  }

  // The memory is there.
  void Touch() {
    const uint32_t tensor = Tensor();
    float* const gradient = rubato_gradient(client_, tensor);
    const float* const weights = rubato_weights(client_, tensor);
    RUBATO_FUZZ_CHECK((gradient == nullptr) == (weights == nullptr), tensor);
    RUBATO_FUZZ_CHECK((weights != nullptr) == (tensor < tensors_), tensor);
    if (gradient != nullptr && Elements(tensor) > 0) gradient[0] = weights[0] + 1;
  }

  void Rows() {
    const uint32_t table = static_cast<uint32_t>(script_.Below(kTensorsMax));
    std::vector<uint64_t> keys(script_.Below(20));
    for (uint64_t& key : keys) key = script_.Size<uint64_t>();
    const size_t dimension = table < dimensions_.size() ? dimensions_[table] : 1;
    if (dimension > 4096) return;
    std::vector<float> rows(keys.size() * dimension, 0.25f);
    switch (script_.Below(3)) {
      case 0:
        Check(rubato_ask_rows(client_, table, keys.data(), keys.size()));
        return;
      case 1:
        Check(rubato_read_rows(client_, table, keys.data(), keys.size(), rows.data(), Seconds()));
        return;
      default:
        Check(rubato_push_rows(client_, table, keys.data(), keys.size(), rows.data(), script_.Size<uint64_t>()));
        return;
    }
  }

  Script& script_;
  rubato_client* client_ = nullptr;
  // Of the model that was defined.
  size_t tensors_ = 0;
  std::vector<size_t> dimensions_;
};

// What the sidecar makes of bytes that are to be a model.
void CheckModel(std::string_view bytes) {
  Model model;
  if (!DecodeModel(bytes, &model)) return;
  Model again;
  RUBATO_FUZZ_CHECK(DecodeModel(EncodeModel(model), &again), "what was encoded is refused");
  RUBATO_FUZZ_CHECK(EncodeModel(again) == EncodeModel(model), "another model");
  TensorLayout layout;
  if (!MakeTensorLayout(model.tensors, &layout).empty()) return;
  size_t end = 0;
  for (const TensorLayout::Place& place : layout.tensors) {
    RUBATO_FUZZ_CHECK(place.weights >= end && place.weights % kTensorAlignment == 0, place.weights);
    end = place.weights + place.elements * sizeof(float);
    RUBATO_FUZZ_CHECK(place.gradient + place.elements * sizeof(float) <= layout.tensor_bytes, place.gradient);
  }
  RUBATO_FUZZ_CHECK(end <= layout.tensor_bytes && layout.tensor_bytes <= layout.total_bytes, layout.total_bytes);
}

}  // namespace
}  // namespace rubato::client

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace rubato::client;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (size > 0 && data[0] == kModelAlone) {
    CheckModel(bytes.substr(1));
    return 0;
  }
  rubato::Script script(bytes);
  SetSidecarAnswers(script.Text());
  Calls calls(script);
  calls.Open();
  for (int left = kCallsMax; left > 0 && calls.open() && !script.done(); --left) calls.Next();
  return 0;
}
