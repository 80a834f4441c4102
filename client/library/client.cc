#include "client/library/client.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "client/library/model_check.h"

namespace rubato::client {
namespace {

constexpr double kDefaultTimeoutSeconds = 60;
// How much longer than its own deadline an answer of the sidecar may take.
constexpr double kGraceSeconds = 30;
// A message of a server's takes several times as much.
constexpr size_t kHeldBytesMax = size_t{256} << 10;
constexpr size_t kKeyBytesMax = 256;
constexpr size_t kValueBytesMax = size_t{1} << 20;

template <typename Body>
std::string Encode(const Body& body) {
  BodyWriter writer;
  writer.Put(body);
  return writer.body();
}

template <typename Part>
std::vector<std::string> NamesOf(const std::vector<Part>& parts) {
  std::vector<std::string> names;
  for (const Part& part : parts) names.push_back(part.name);
  return names;
}

constexpr char kNotStarted[] = "before rubato_start";
constexpr char kUnreadable[] = "the sidecar's answer cannot be read";

// Of a tensor's state that goes in one message.
constexpr size_t kStateElements = size_t{1} << 22;

size_t ElementsOf(const Model::Tensor& tensor) {
  size_t elements = 1;
  for (int64_t dimension : tensor.shape) elements *= static_cast<size_t>(dimension);
  return elements;
}

}  // namespace

std::unique_ptr<Client> Client::Open(const rubato_options& options, rubato_result* result, std::string* error) {
  *result = RUBATO_INVALID;
  if (options.coordinator == nullptr || std::strchr(options.coordinator, ':') == nullptr) {
    *error = "options.coordinator: \"host:port\" is needed";
    return nullptr;
  }
  if (!(options.timeout_seconds >= 0) || std::isinf(options.timeout_seconds)) {
    *error = "options.timeout_seconds: a number >= 0 is needed";
    return nullptr;
  }
  const double timeout = options.timeout_seconds == 0 ? kDefaultTimeoutSeconds : options.timeout_seconds;
  *result = RUBATO_UNAVAILABLE;
  int descriptor = -1;
  std::unique_ptr<SidecarProcess> process =
      SidecarProcess::Start({.program = options.sidecar == nullptr ? "" : options.sidecar,
                             .log_path = options.log_path == nullptr ? "" : options.log_path},
                            &descriptor, error);
  if (process == nullptr) return nullptr;
  std::unique_ptr<Client> client(new Client(timeout, std::move(process), descriptor));
  BodyWriter body;
  body.Put(OpenBody{.abi_version = RUBATO_ABI_VERSION,
                    .rank = options.rank,
                    .timeout_seconds = timeout,
                    .client_process = client->process().owner()});
  body.Text(options.coordinator);
  SidecarLink::Answer answer = client->AskInTime(FrameKind::kOpen, body.body());
  *result = answer.result;
  *error = std::move(answer.error);
  return answer.result == RUBATO_OK ? std::move(client) : nullptr;
}

rubato_result Client::Finish(rubato_result result, std::string error) {
  error_ = std::move(error);
  return result;
}

SidecarLink::Answer Client::AskInTime(FrameKind kind, std::string_view body, int passed) {
  SidecarLink::Answer answer = link_.Ask(kind, body, timeout_seconds_ + kGraceSeconds, passed);
  if (answer.result != RUBATO_AGAIN) return answer;
  return {.result = RUBATO_UNAVAILABLE, .error = "the sidecar does not answer"};
}

rubato_result Client::Tell(FrameKind kind, std::string_view body) {
  std::string error = link_.Tell(kind, body);
  const bool sent = error.empty();
  return Finish(sent ? RUBATO_OK : RUBATO_UNAVAILABLE, std::move(error));
}

rubato_result Client::Define(const rubato_model& given) {
  if (steps_.has_value()) return Invalid("rubato_define: the model is defined already");
  Model model;
  if (std::string error = ReadModel(given, &model); !error.empty()) return Invalid(std::move(error));
  TensorLayout layout;
  if (std::string error = MakeTensorLayout(model.tensors, &layout); !error.empty()) return Invalid(std::move(error));
  std::string error;
  std::unique_ptr<TensorMemory> memory = TensorMemory::Create(std::move(layout), &error);
  if (memory == nullptr) return Finish(RUBATO_UNAVAILABLE, std::move(error));
  SidecarLink::Answer answer = AskInTime(FrameKind::kDefine, EncodeModel(model), memory->descriptor());
  if (answer.result != RUBATO_OK) return Finish(answer.result, std::move(answer.error));
  memory->CloseDescriptor();
  if (model.keep_weights) memory->KeepWeights();
  memory_ = std::move(memory);
  steps_.emplace(NamesOf(model.tensors), NamesOf(model.tables));
  algorithm_ = given.algorithm;
  groups_ = model.groups.size();
  keeps_weights_ = model.keep_weights;
  for (const Model::Tensor& tensor : model.tensors) elements_.push_back(ElementsOf(tensor));
  for (const Model::Table& table : model.tables) {
    tables_.emplace_back(static_cast<uint32_t>(tables_.size()), table.name, static_cast<size_t>(table.dimension));
  }
  return Finish(RUBATO_OK, "");
}

rubato_result Client::Start() {
  if (!steps_.has_value()) return Invalid("rubato_start: before rubato_define");
  if (started_) return Invalid("rubato_start: the client has started already");
  SidecarLink::Answer answer = AskInTime(FrameKind::kStart, "");
  started_ = answer.result == RUBATO_OK;
  return Finish(answer.result, std::move(answer.error));
}

rubato_result Client::Await(uint32_t tensor, double seconds) {
  if (!started()) return Invalid(std::string("rubato_await: ") + kNotStarted);
  if (keeps_weights_)
    return Invalid("rubato_await: with model.keep_weights the next weights come with rubato_begin alone");
  if (std::string error = steps_->CheckAwait(tensor); !error.empty()) return Invalid(std::move(error));
  if (tensor < arrived_) return Finish(RUBATO_OK, "");
  SidecarLink::Answer answer = link_.Ask(FrameKind::kAwait, Encode(AwaitBody{.tensor = tensor}), seconds);
  if (answer.result != RUBATO_OK) return Finish(answer.result, std::move(answer.error));
  ArrivedBody arrived;
  BodyReader reader(answer.body);
  if (!reader.Get(&arrived) || !reader.AtEnd() || arrived.tensors <= tensor) {
    return Finish(RUBATO_UNAVAILABLE, kUnreadable);
  }
  arrived_ = arrived.tensors;
  return Finish(RUBATO_OK, "");
}

rubato_result Client::Begin(rubato_step* step, double seconds) {
  if (!started()) return Invalid(std::string("rubato_begin: ") + kNotStarted);
  if (std::string error = steps_->CheckBegin(); !error.empty()) return Invalid(std::move(error));
  SidecarLink::Answer answer = link_.Ask(FrameKind::kBegin, "", seconds);
  if (answer.result == RUBATO_OK || answer.result == RUBATO_MOVED) {
    arrived_ = 0;
    // An answer to come would be of another step.
    link_.Forget(FrameKind::kAwait);
  }
  if (answer.result != RUBATO_OK) return Finish(answer.result, std::move(answer.error));
  StepBody body;
  BodyReader reader(answer.body);
  bool readable = reader.Get(&body);
  for (TableRows& table : tables_) readable = readable && table.Begin(&reader);
  if (!readable || !reader.AtEnd()) return Finish(RUBATO_UNAVAILABLE, kUnreadable);
  steps_->Begin(body);
  *step = {.step = body.step,
           .generation = body.generation,
           .mode = static_cast<rubato_mode>(body.mode),
           .staleness_bound = body.staleness_bound,
           .workers = body.workers,
           .learning_rate_scale = body.learning_rate_scale,
           .rollbacks = body.rollbacks};
  return Finish(RUBATO_OK, "");
}

rubato_result Client::HasWeights(uint32_t tensor, int* has, double seconds) {
  if (!started()) return Invalid(std::string("rubato_has_weights: ") + kNotStarted);
  if (!keeps_weights_) return Invalid("rubato_has_weights: only with model.keep_weights");
  if (tensor >= elements_.size()) {
    return Invalid("rubato_has_weights: tensor " + std::to_string(tensor) + ": the model has " +
                   std::to_string(elements_.size()));
  }
  if (std::string error = steps_->CheckBeforePush("rubato_has_weights"); !error.empty()) {
    return Invalid(std::move(error));
  }
  SidecarLink::Answer answer = link_.Ask(FrameKind::kHasWeights, Encode(HasWeightsBody{.tensor = tensor}), seconds);
  if (answer.result != RUBATO_OK) return Finish(answer.result, std::move(answer.error));
  int64_t found = 0;
  BodyReader reader(answer.body);
  if (!reader.Get(&found) || !reader.AtEnd()) return Finish(RUBATO_UNAVAILABLE, kUnreadable);
  *has = found != 0 ? 1 : 0;
  return Finish(RUBATO_OK, "");
}

rubato_result Client::SetHyperparameters(uint32_t group, const rubato_hyperparameters& given) {
  if (!steps_.has_value()) return Invalid("rubato_set_hyperparameters: before rubato_define");
  if (group >= groups_) {
    return Invalid("group " + std::to_string(group) + ": the model has " + std::to_string(groups_));
  }
  const Hyperparameters values = ReadHyperparameters(given);
  if (std::string error = CheckHyperparameters(group, values, algorithm_); !error.empty()) {
    return Invalid(std::move(error));
  }
  return Tell(FrameKind::kHyperparameters, Encode(HyperparametersBody{.group = group, .values = values}));
}

rubato_result Client::SetSlice(const SliceBody& slice) {
  if (!started()) return Invalid(std::string("rubato_set_slice: ") + kNotStarted);
  if (std::string error = steps_->SetSlice(slice); !error.empty()) return Invalid(std::move(error));
  return Tell(FrameKind::kSlice, Encode(slice));
}

rubato_result Client::SetEpoch(double epoch) {
  if (!started()) return Invalid(std::string("rubato_set_epoch: ") + kNotStarted);
  if (!std::isfinite(epoch) || epoch < 0) return Invalid("rubato_set_epoch: a number >= 0 is allowed");
  if (std::string error = steps_->CheckEpoch(); !error.empty()) return Invalid(std::move(error));
  return Tell(FrameKind::kEpoch, Encode(epoch));
}

rubato_result Client::TellPush(FrameKind kind, std::string_view body, size_t bytes) {
  held_bytes_ += bytes;
  if (!steps_->complete() && held_bytes_ < kHeldBytesMax) {
    std::string error = link_.TellWithNext(kind, body);
    const bool held = error.empty();
    return Finish(held ? RUBATO_OK : RUBATO_UNAVAILABLE, std::move(error));
  }
  held_bytes_ = 0;
  return Tell(kind, body);
}

rubato_result Client::Push(uint32_t tensor, uint64_t examples) {
  if (!started()) return Invalid(std::string("rubato_push: ") + kNotStarted);
  if (std::string error = steps_->Push(tensor, examples); !error.empty()) return Invalid(std::move(error));
  return TellPush(FrameKind::kPush, Encode(PushBody{.examples = examples, .tensor = tensor}), memory_->Bytes(tensor));
}

rubato_result Client::PushAbsent(uint32_t tensor) {
  if (!started()) return Invalid(std::string("rubato_push_absent: ") + kNotStarted);
  if (std::string error = steps_->PushAbsent(tensor); !error.empty()) return Invalid(std::move(error));
  return TellPush(FrameKind::kPushAbsent, Encode(PushBody{.tensor = tensor}), 0);
}

rubato_result Client::Skip() {
  if (!started()) return Invalid(std::string("rubato_skip: ") + kNotStarted);
  if (std::string error = steps_->Skip(); !error.empty()) return Invalid("rubato_skip: " + error);
  for (TableRows& table : tables_) table.Forget();
  return Tell(FrameKind::kSkip, "");
}

rubato_result Client::Report(const ReportBody& report) {
  if (!started()) return Invalid(std::string("rubato_report: ") + kNotStarted);
  return Tell(FrameKind::kReport, Encode(report));
}

rubato_result Client::Pause(const char* why) {
  if (!started()) return Invalid(std::string("rubato_pause: ") + kNotStarted);
  return Tell(FrameKind::kPause, why == nullptr ? "" : why);
}

rubato_result Client::Lease(rubato_lease_range* range, double seconds) {
  if (!started()) return Invalid(std::string("rubato_lease: ") + kNotStarted);
  SidecarLink::Answer answer = link_.Ask(FrameKind::kLease, "", seconds);
  if (answer.result != RUBATO_OK) return Finish(answer.result, std::move(answer.error));
  LeaseBody lease;
  BodyReader reader(answer.body);
  if (!reader.Get(&lease) || !reader.AtEnd()) return Finish(RUBATO_UNAVAILABLE, kUnreadable);
  steps_->AddLease(lease);
  *range = {.shard = lease.shard, .epoch = lease.epoch, .begin = lease.begin, .end = lease.end};
  return Finish(RUBATO_OK, "");
}

rubato_result Client::CheckKey(const char* name, const char* key) {
  const size_t bytes = key == nullptr ? 0 : std::strlen(key);
  if (bytes >= 1 && bytes <= kKeyBytesMax) return RUBATO_OK;
  return Invalid(std::string(name) + " of " + std::to_string(bytes) + " bytes; 1 to 256 are allowed");
}

rubato_result Client::Put(const char* key, const void* value, size_t bytes) {
  if (CheckKey("key", key) != RUBATO_OK) return RUBATO_INVALID;
  if (bytes > kValueBytesMax) {
    return Invalid(std::string("value of ") + key + ": " + std::to_string(bytes) + " bytes; up to 1 MiB is allowed");
  }
  BodyWriter body;
  body.Text(key).Text({static_cast<const char*>(value), bytes});
  SidecarLink::Answer answer = AskInTime(FrameKind::kPut, body.body());
  return Finish(answer.result, std::move(answer.error));
}

rubato_result Client::Get(const char* key, void* value, size_t capacity, size_t* bytes, double seconds) {
  if (CheckKey("key", key) != RUBATO_OK) return RUBATO_INVALID;
  BodyWriter body;
  body.Text(key);
  SidecarLink::Answer answer = link_.Ask(FrameKind::kGet, body.body(), seconds);
  if (answer.result == RUBATO_OK) {
    *bytes = answer.body.size();
    if (const size_t copied = std::min(capacity, answer.body.size()); copied > 0) {
      std::memcpy(value, answer.body.data(), copied);
    }
  }
  return Finish(answer.result, std::move(answer.error));
}

rubato_result Client::Erase(const char* key) {
  if (CheckKey("key", key) != RUBATO_OK) return RUBATO_INVALID;
  BodyWriter body;
  body.Text(key);
  SidecarLink::Answer answer = AskInTime(FrameKind::kErase, body.body());
  return Finish(answer.result, std::move(answer.error));
}

rubato_result Client::Barrier(const char* name, uint32_t count, double seconds) {
  if (CheckKey("name", name) != RUBATO_OK) return RUBATO_INVALID;
  if (count == 0 || count > 1024) {
    return Invalid("barrier " + std::string(name) + ": count = " + std::to_string(count) + "; 1 to 1024 is allowed");
  }
  BodyWriter body;
  body.Put(BarrierBody{.count = count}).Text(name);
  SidecarLink::Answer answer = link_.Ask(FrameKind::kBarrier, body.body(), seconds);
  return Finish(answer.result, std::move(answer.error));
}

rubato_result Client::Switch(const SwitchBody& request, double seconds) {
  if (!started()) return Invalid(std::string("rubato_switch: ") + kNotStarted);
  SidecarLink::Answer answer = link_.Ask(FrameKind::kSwitch, Encode(request), seconds);
  return Finish(answer.result, std::move(answer.error));
}

rubato_result Client::Checkpoint() {
  if (!started()) return Invalid(std::string("rubato_checkpoint: ") + kNotStarted);
  SidecarLink::Answer answer = AskInTime(FrameKind::kCheckpoint, "");
  return Finish(answer.result, std::move(answer.error));
}

rubato_result Client::AwaitCheckpoint(char* directory, size_t capacity, double seconds) {
  if (!started()) return Invalid(std::string("rubato_await_checkpoint: ") + kNotStarted);
  SidecarLink::Answer answer = link_.Ask(FrameKind::kAwaitCheckpoint, "", seconds);
  if (answer.result != RUBATO_OK) return Finish(answer.result, std::move(answer.error));
  if (answer.body.size() >= capacity) {
    return Invalid("the checkpoint's directory " + answer.body + " does not fit into " + std::to_string(capacity) +
                   " bytes");
  }
  std::memcpy(directory, answer.body.c_str(), answer.body.size() + 1);
  return Finish(RUBATO_OK, "");
}

rubato_result Client::CheckSlot(const char* name, uint32_t slot) {
  if (!steps_.has_value()) return Invalid(std::string(name) + ": before rubato_define");
  if (slot < SlotsOf(algorithm_)) return RUBATO_OK;
  return Invalid(std::string(name) + ": slot " + std::to_string(slot) + ": the algorithm has " +
                 std::to_string(SlotsOf(algorithm_)));
}

rubato_result Client::SetState(uint32_t tensor, uint32_t slot, const float* values, int64_t updates) {
  if (CheckSlot("rubato_set_state", slot) != RUBATO_OK) return RUBATO_INVALID;
  if (started_) return Invalid("rubato_set_state: after rubato_start");
  if (tensor >= elements_.size()) {
    return Invalid("rubato_set_state: tensor " + std::to_string(tensor) + ": the model has " +
                   std::to_string(elements_.size()));
  }
  if (updates < 0) return Invalid("rubato_set_state: updates = " + std::to_string(updates) + "; 0 or more is allowed");
  for (size_t begin = 0; begin < elements_[tensor]; begin += kStateElements) {
    const size_t count = std::min(kStateElements, elements_[tensor] - begin);
    BodyWriter body;
    body.Put(StateBody{.slot = slot, .tensor = tensor, .begin = begin, .updates = updates});
    body.Text({reinterpret_cast<const char*>(values + begin), count * sizeof(float)});
    if (Tell(FrameKind::kState, body.body()) != RUBATO_OK) return RUBATO_UNAVAILABLE;
  }
  return Finish(RUBATO_OK, "");
}

rubato_result Client::FetchState(uint32_t slot, int64_t* updates, double seconds) {
  if (CheckSlot("rubato_fetch_state", slot) != RUBATO_OK) return RUBATO_INVALID;
  if (!started()) return Invalid(std::string("rubato_fetch_state: ") + kNotStarted);
  if (std::string error = steps_->CheckBeforePush("rubato_fetch_state"); !error.empty()) {
    return Invalid(std::move(error));
  }
  SidecarLink::Answer answer = link_.Ask(FrameKind::kFetchState, Encode(FetchStateBody{.slot = slot}), seconds);
  if (answer.result != RUBATO_OK) return Finish(answer.result, std::move(answer.error));
  BodyReader reader(answer.body);
  for (size_t tensor = 0; tensor < elements_.size(); ++tensor) {
    if (!reader.Get(&updates[tensor])) return Finish(RUBATO_UNAVAILABLE, "the sidecar's answer cannot be read");
  }
  return Finish(RUBATO_OK, "");
}

std::string Client::CheckRows(const char* name, uint32_t table, size_t keys) const {
  const size_t bytes = sizeof(uint64_t) + tables_[table].row_bytes();
  if (keys <= kRowBytesMax / bytes) return "";
  return std::string(name) + ": " + std::to_string(keys) + " different keys of table " + tables_[table].name() +
         ", whose rows take " + std::to_string(bytes) + " bytes with their keys; up to " +
         std::to_string(kRowBytesMax) + " bytes are allowed";
}

rubato_result Client::AskRows(uint32_t table, const uint64_t* keys, size_t count) {
  if (!started()) return Invalid(std::string("rubato_ask_rows: ") + kNotStarted);
  if (std::string error = steps_->CheckAskRows(table); !error.empty()) return Invalid(std::move(error));
  tables_[table].Ask(keys, count);
  // All of them come with one answer.
  size_t bytes = 0;
  for (const TableRows& other : tables_) bytes += other.asked() * other.row_bytes();
  // What an earlier call has asked for is of no use any more either.
  if (bytes > kRowBytesMax) tables_[table].Ask(nullptr, 0);
  // They are of use with the push.
  std::string error = link_.TellWithNext(FrameKind::kAskRows, tables_[table].asked_body());
  if (!error.empty()) return Finish(RUBATO_UNAVAILABLE, std::move(error));
  if (bytes <= kRowBytesMax) return Finish(RUBATO_OK, "");
  return Invalid("rubato_ask_rows: rows of " + std::to_string(bytes) + " bytes for the next step with those of table " +
                 tables_[table].name() + "; up to " + std::to_string(kRowBytesMax) + " bytes are allowed");
}

rubato_result Client::ReadRows(uint32_t table, const uint64_t* keys, size_t count, float* rows, double seconds) {
  if (!started()) return Invalid(std::string("rubato_read_rows: ") + kNotStarted);
  if (std::string error = steps_->CheckTable(table); !error.empty()) return Invalid(std::move(error));
  TableRows& read = tables_[table];
  SidecarLink::Answer answer;
  if (const size_t missing = read.FindMissing(keys, count); missing > 0) {
    if (std::string error = CheckRows("rubato_read_rows", table, missing); !error.empty()) {
      return Invalid(std::move(error));
    }
    answer = link_.Ask(FrameKind::kReadRows, read.missing_body(), seconds);
    if (answer.result != RUBATO_OK) return Finish(answer.result, std::move(answer.error));
  }
  const bool readable = read.Copy(keys, count, answer.body, rows);
  return readable ? Finish(RUBATO_OK, "") : Finish(RUBATO_UNAVAILABLE, kUnreadable);
}

rubato_result Client::PushRows(uint32_t table, const uint64_t* keys, size_t count, const float* gradients,
                               uint64_t examples) {
  if (!started()) return Invalid(std::string("rubato_push_rows: ") + kNotStarted);
  if (std::string error = steps_->CheckTable(table); !error.empty()) return Invalid(std::move(error));
  TableRows& pushed = tables_[table];
  std::string error = CheckRows("rubato_push_rows", table, pushed.AddUp(keys, count, gradients));
  if (error.empty()) error = steps_->PushRows(table, examples);
  if (!error.empty()) return Invalid(std::move(error));
  pushed.Forget();
  const std::string body = pushed.pushed_body(examples);
  return TellPush(FrameKind::kPushRows, body, body.size());
}

rubato_result Client::Close(const char* error) {
  SidecarLink::Answer answer = AskInTime(FrameKind::kClose, error == nullptr   ? ""
                                                            : error[0] == '\0' ? "the client gave up"
                                                                               : error);
  return Finish(answer.result, std::move(answer.error));
}

}  // namespace rubato::client
