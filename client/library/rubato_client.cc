// The functions of rubato_client.h: what concerns threads, forks and null pointers; the rest is Client's.
#include "client/rubato_client.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <string>

#include "client/library/client.h"
#include "client/library/version.h"

namespace {

constexpr char kTwoThreads[] = "another thread is in a call with this client; one at a time uses it";
constexpr char kForked[] = "the client belongs to this process's parent; a forked child opens one of its own";

// Of this thread: errors of rubato_open and rubato_close, and of calls that could not look at their client.
thread_local std::string thread_error;
thread_local const rubato_client* thread_error_of = nullptr;

rubato_result FinishOnThread(const rubato_client* client, rubato_result result, std::string error) {
  thread_error_of = client;
  thread_error = std::move(error);
  return result;
}

}  // namespace

struct rubato_client {
  std::unique_ptr<rubato::client::Client> client;
  std::atomic_flag busy = ATOMIC_FLAG_INIT;
};

namespace {

// Calls `call` with the client, unless the client is not to be used now.
template <typename Call>
rubato_result With(rubato_client* client, Call call) {
  if (client == nullptr) return FinishOnThread(nullptr, RUBATO_INVALID, "client: is NULL");
  if (client->client->process().forked()) return FinishOnThread(client, RUBATO_FORKED, kForked);
  if (client->busy.test_and_set(std::memory_order_acquire)) {
    return FinishOnThread(client, RUBATO_INVALID, kTwoThreads);
  }
  if (thread_error_of == client) thread_error_of = nullptr;
  const rubato_result result = call(client->client.get());
  client->busy.clear(std::memory_order_release);
  return result;
}

// As With, for a call that writes to `output`.
template <typename Call>
rubato_result WithOutput(rubato_client* client, const void* output, const char* name, Call call) {
  return With(client, [&](rubato::client::Client* self) {
    return output == nullptr ? self->Invalid(std::string(name) + ": is NULL") : call(self);
  });
}

// The fields that the caller knows of; false if the struct is smaller than today's, and of no earlier size: a field may
// end in it that is not all there.
template <typename Struct>
bool CopyStruct(const Struct* given, std::initializer_list<size_t> earlier, Struct* copy) {
  *copy = {};
  if (given == nullptr) return false;
  const size_t bytes = given->struct_bytes;
  if (bytes < sizeof(Struct) && std::find(earlier.begin(), earlier.end(), bytes) == earlier.end()) return false;
  std::memcpy(copy, given, std::min(bytes, sizeof(Struct)));
  return true;
}

}  // namespace

uint32_t rubato_abi_version(void) { return RUBATO_ABI_VERSION; }

const char* rubato_version(void) { return RUBATO_VERSION; }

rubato_result rubato_open(const rubato_options* options, rubato_client** client) {
  rubato_options copy;
  if (client == nullptr) return FinishOnThread(nullptr, RUBATO_INVALID, "client: is NULL");
  *client = nullptr;
  if (!CopyStruct(options, {}, &copy)) {
    return FinishOnThread(nullptr, RUBATO_INVALID, "options.struct_bytes: is not sizeof(rubato_options)");
  }
  rubato_result result = RUBATO_OK;
  std::string error;
  std::unique_ptr<rubato::client::Client> opened = rubato::client::Client::Open(copy, &result, &error);
  if (opened == nullptr) return FinishOnThread(nullptr, result, std::move(error));
  *client = new rubato_client{.client = std::move(opened)};
  return FinishOnThread(nullptr, RUBATO_OK, "");
}

const char* rubato_error(const rubato_client* client) {
  if (client == nullptr || client == thread_error_of) return thread_error.c_str();
  return client->client->error().c_str();
}

rubato_result rubato_define(rubato_client* client, const rubato_model* model) {
  return WithOutput(client, model, "model", [&](rubato::client::Client* self) {
    rubato_model copy;
    if (!CopyStruct(model,
                    {offsetof(rubato_model, tables), offsetof(rubato_model, admission),
                     offsetof(rubato_model, row_formats), offsetof(rubato_model, keep_weights)},
                    &copy)) {
      return self->Invalid("model.struct_bytes: is not sizeof(rubato_model)");
    }
    return self->Define(copy);
  });
}

float* rubato_weights(rubato_client* client, uint32_t tensor) {
  return client == nullptr ? nullptr : client->client->Weights(tensor);
}

void rubato_free_weights(float* weights) { rubato::client::TensorMemory::FreeWeights(weights); }

float* rubato_gradient(rubato_client* client, uint32_t tensor) {
  return client == nullptr ? nullptr : client->client->Gradient(tensor);
}

rubato_result rubato_start(rubato_client* client) {
  return With(client, [](rubato::client::Client* self) { return self->Start(); });
}

rubato_result rubato_begin(rubato_client* client, rubato_step* step, double seconds) {
  return WithOutput(client, step, "step", [&](rubato::client::Client* self) { return self->Begin(step, seconds); });
}

rubato_result rubato_has_weights(rubato_client* client, uint32_t tensor, int* has, double seconds) {
  return WithOutput(client, has, "has",
                    [&](rubato::client::Client* self) { return self->HasWeights(tensor, has, seconds); });
}

rubato_result rubato_await(rubato_client* client, uint32_t tensor, double seconds) {
  return With(client, [&](rubato::client::Client* self) { return self->Await(tensor, seconds); });
}

rubato_result rubato_set_hyperparameters(rubato_client* client, uint32_t group, const rubato_hyperparameters* values) {
  return WithOutput(client, values, "values",
                    [&](rubato::client::Client* self) { return self->SetHyperparameters(group, *values); });
}

rubato_result rubato_set_slice(rubato_client* client, uint64_t shard, int64_t begin, int64_t end) {
  return With(client, [&](rubato::client::Client* self) {
    return self->SetSlice({.shard = shard, .begin = begin, .end = end});
  });
}

rubato_result rubato_set_epoch(rubato_client* client, double epoch) {
  return With(client, [&](rubato::client::Client* self) { return self->SetEpoch(epoch); });
}

rubato_result rubato_push(rubato_client* client, uint32_t tensor, uint64_t examples) {
  return With(client, [&](rubato::client::Client* self) { return self->Push(tensor, examples); });
}

rubato_result rubato_push_absent(rubato_client* client, uint32_t tensor) {
  return With(client, [&](rubato::client::Client* self) { return self->PushAbsent(tensor); });
}

rubato_result rubato_skip(rubato_client* client) {
  return With(client, [](rubato::client::Client* self) { return self->Skip(); });
}

rubato_result rubato_report(rubato_client* client, uint64_t examples, double loss_sum, double correct) {
  return With(client, [&](rubato::client::Client* self) {
    return self->Report({.examples = examples, .loss_sum = loss_sum, .correct = correct});
  });
}

rubato_result rubato_pause(rubato_client* client, const char* why) {
  return With(client, [&](rubato::client::Client* self) { return self->Pause(why); });
}

rubato_result rubato_lease(rubato_client* client, rubato_lease_range* range, double seconds) {
  return WithOutput(client, range, "range", [&](rubato::client::Client* self) { return self->Lease(range, seconds); });
}

rubato_result rubato_put(rubato_client* client, const char* key, const void* value, size_t bytes) {
  return With(client, [&](rubato::client::Client* self) {
    return value == nullptr && bytes > 0 ? self->Invalid("value: is NULL") : self->Put(key, value, bytes);
  });
}

rubato_result rubato_get(rubato_client* client, const char* key, void* value, size_t capacity, size_t* bytes,
                         double seconds) {
  return WithOutput(client, bytes, "bytes", [&](rubato::client::Client* self) {
    return value == nullptr && capacity > 0 ? self->Invalid("value: is NULL")
                                            : self->Get(key, value, capacity, bytes, seconds);
  });
}

rubato_result rubato_erase(rubato_client* client, const char* key) {
  return With(client, [&](rubato::client::Client* self) { return self->Erase(key); });
}

rubato_result rubato_barrier(rubato_client* client, const char* name, uint32_t count, double seconds) {
  return With(client, [&](rubato::client::Client* self) { return self->Barrier(name, count, seconds); });
}

rubato_result rubato_switch(rubato_client* client, rubato_mode mode, int64_t staleness_bound, uint32_t quorum,
                            double learning_rate_scale, double seconds) {
  return With(client, [&](rubato::client::Client* self) {
    return self->Switch({.staleness_bound = staleness_bound,
                         .learning_rate_scale = learning_rate_scale,
                         .mode = static_cast<uint32_t>(mode),
                         .quorum = quorum},
                        seconds);
  });
}

rubato_result rubato_checkpoint(rubato_client* client) {
  return With(client, [](rubato::client::Client* self) { return self->Checkpoint(); });
}

rubato_result rubato_await_checkpoint(rubato_client* client, char* directory, size_t capacity, double seconds) {
  return WithOutput(client, directory, "directory",
                    [&](rubato::client::Client* self) { return self->AwaitCheckpoint(directory, capacity, seconds); });
}

rubato_result rubato_set_state(rubato_client* client, uint32_t tensor, uint32_t slot, const float* values,
                               int64_t updates) {
  return WithOutput(client, values, "values",
                    [&](rubato::client::Client* self) { return self->SetState(tensor, slot, values, updates); });
}

rubato_result rubato_fetch_state(rubato_client* client, uint32_t slot, int64_t* updates, double seconds) {
  return WithOutput(client, updates, "updates",
                    [&](rubato::client::Client* self) { return self->FetchState(slot, updates, seconds); });
}

rubato_result rubato_ask_rows(rubato_client* client, uint32_t table, const uint64_t* keys, size_t count) {
  return With(client, [&](rubato::client::Client* self) {
    return keys == nullptr && count > 0 ? self->Invalid("keys: is NULL") : self->AskRows(table, keys, count);
  });
}

rubato_result rubato_read_rows(rubato_client* client, uint32_t table, const uint64_t* keys, size_t count, float* rows,
                               double seconds) {
  return With(client, [&](rubato::client::Client* self) {
    return (keys == nullptr || rows == nullptr) && count > 0 ? self->Invalid("keys or rows: is NULL")
                                                             : self->ReadRows(table, keys, count, rows, seconds);
  });
}

rubato_result rubato_push_rows(rubato_client* client, uint32_t table, const uint64_t* keys, size_t count,
                               const float* gradients, uint64_t examples) {
  return With(client, [&](rubato::client::Client* self) {
    return (keys == nullptr || gradients == nullptr) && count > 0
               ? self->Invalid("keys or gradients: is NULL")
               : self->PushRows(table, keys, count, gradients, examples);
  });
}

rubato_result rubato_drain(rubato_client* client) {
  if (client == nullptr) return RUBATO_INVALID;
  if (client->client->process().forked()) return RUBATO_FORKED;
  client->client->process().Drain();
  return RUBATO_OK;
}

rubato_result rubato_close(rubato_client* client, const char* error) {
  if (client == nullptr) return FinishOnThread(nullptr, RUBATO_INVALID, "client: is NULL");
  if (client->client->process().forked()) {
    client->client->Abandon();
    delete client;
    return FinishOnThread(nullptr, RUBATO_FORKED, kForked);
  }
  if (client->busy.test_and_set(std::memory_order_acquire)) {
    return FinishOnThread(client, RUBATO_INVALID, kTwoThreads);
  }
  const rubato_result result = client->client->Close(error);
  std::string text = client->client->error();
  delete client;
  return FinishOnThread(nullptr, result, std::move(text));
}
