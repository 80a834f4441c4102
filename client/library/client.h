#ifndef RUBATO_CLIENT_LIBRARY_CLIENT_H_
#define RUBATO_CLIENT_LIBRARY_CLIENT_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/library/sidecar_link.h"
#include "client/library/step_state.h"
#include "client/library/table_rows.h"
#include "client/library/tensor_memory.h"
#include "client/link/model.h"
#include "client/rubato_client.h"

namespace rubato::client {

// What rubato_client.h says, but for what concerns threads and forks: what is said at the wrong time, or is no good, is
// refused here, and the rest goes to the sidecar. error() has the text of the last result. One thread at a time.
class Client {
 public:
  // Null, with `result` and `error`.
  static std::unique_ptr<Client> Open(const rubato_options& options, rubato_result* result, std::string* error);

  rubato_result Define(const rubato_model& model);
  rubato_result Start();
  rubato_result Await(uint32_t tensor, double seconds);
  rubato_result Begin(rubato_step* step, double seconds);
  rubato_result HasWeights(uint32_t tensor, int* has, double seconds);
  rubato_result SetHyperparameters(uint32_t group, const rubato_hyperparameters& values);
  rubato_result SetSlice(const SliceBody& slice);
  rubato_result SetEpoch(double epoch);
  rubato_result Push(uint32_t tensor, uint64_t examples);
  rubato_result PushAbsent(uint32_t tensor);
  rubato_result Skip();
  rubato_result Report(const ReportBody& report);
  rubato_result Pause(const char* why);
  rubato_result Lease(rubato_lease_range* range, double seconds);
  rubato_result Put(const char* key, const void* value, size_t bytes);
  rubato_result Get(const char* key, void* value, size_t capacity, size_t* bytes, double seconds);
  rubato_result Erase(const char* key);
  rubato_result Barrier(const char* name, uint32_t count, double seconds);
  rubato_result Switch(const SwitchBody& request, double seconds);
  rubato_result Checkpoint();
  rubato_result AwaitCheckpoint(char* directory, size_t capacity, double seconds);
  rubato_result SetState(uint32_t tensor, uint32_t slot, const float* values, int64_t updates);
  rubato_result FetchState(uint32_t slot, int64_t* updates, double seconds);
  rubato_result AskRows(uint32_t table, const uint64_t* keys, size_t count);
  rubato_result ReadRows(uint32_t table, const uint64_t* keys, size_t count, float* rows, double seconds);
  rubato_result PushRows(uint32_t table, const uint64_t* keys, size_t count, const float* gradients, uint64_t examples);
  // The last call.
  rubato_result Close(const char* error);

  // Any thread.
  float* Weights(uint32_t tensor) const { return memory_ == nullptr ? nullptr : memory_->Weights(tensor); }
  float* Gradient(uint32_t tensor) const { return memory_ == nullptr ? nullptr : memory_->Gradient(tensor); }
  const SidecarProcess& process() const { return link_.process(); }
  // In a forked child, before the client is destroyed there.
  void Abandon() { link_.Abandon(); }

  const std::string& error() const { return error_; }
  rubato_result Invalid(std::string error) { return Finish(RUBATO_INVALID, std::move(error)); }

 private:
  Client(double timeout_seconds, std::unique_ptr<SidecarProcess> process, int descriptor)
      : timeout_seconds_(timeout_seconds), link_(std::move(process), descriptor) {}

  rubato_result Finish(rubato_result result, std::string error);
  // For calls that may not come before rubato_start.
  bool started() const { return started_; }
  // Waits for an answer that the sidecar gives within the options' timeout.
  SidecarLink::Answer AskInTime(FrameKind kind, std::string_view body, int passed = -1);
  rubato_result Tell(FrameKind kind, std::string_view body);
  // Of `bytes` of a gradient. Little ones go together: each message wakes the sidecar on a core that may be computing.
  rubato_result TellPush(FrameKind kind, std::string_view body, size_t bytes);
  // What is wrong with so many different keys in a call; empty: nothing.
  std::string CheckRows(const char* name, uint32_t table, size_t keys) const;
  rubato_result CheckKey(const char* name, const char* key);
  rubato_result CheckSlot(const char* name, uint32_t slot);

  const double timeout_seconds_;
  SidecarLink link_;
  std::unique_ptr<TensorMemory> memory_;
  std::optional<StepState> steps_;  // Once there is a model.
  rubato_algorithm algorithm_ = RUBATO_SGD;
  size_t groups_ = 0;
  bool keeps_weights_ = false;
  // How many of the model's first tensors have the weights of the next step, as far as was asked.
  uint64_t arrived_ = 0;
  // By tensor.
  std::vector<size_t> elements_;
  // By table.
  std::vector<TableRows> tables_;
  // Of gradients whose pushes go with the next message.
  size_t held_bytes_ = 0;
  bool started_ = false;
  std::string error_;
};

}  // namespace rubato::client

#endif  // RUBATO_CLIENT_LIBRARY_CLIENT_H_
