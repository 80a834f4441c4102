#ifndef RUBATO_WORKER_PS_CLIENT_PS_CLIENT_H_
#define RUBATO_WORKER_PS_CLIENT_PS_CLIENT_H_

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/byte_span.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/model_spec.h"
#include "common/mutex.h"
#include "common/network_link/link_relay.h"
#include "common/security/task_security.h"
#include "common/shared_memory/arena.h"
#include "common/shared_memory/blocks.h"
#include "common/shared_memory/link.h"
#include "common/shared_memory/region.h"
#include "common/trace/trace_recorder.h"
#include "common/wire/exchange_codec.h"
#include "proto/coordinator.pb.h"
#include "worker/ps_client/arrived_weights.h"
#include "worker/ps_client/batching.h"
#include "worker/ps_client/exchange_trace.h"
#include "worker/ps_client/gradient_encoder.h"
#include "worker/ps_client/parameters.h"
#include "worker/ps_client/server_connections.h"
#include "worker/ps_client/step_machine.h"
#include "worker/ps_client/table_parts.h"

namespace rubato::worker {

// A worker's connection to all parameter servers: pulls weights into the model, pushes gradients out of it, survives
// broken connections and changes of plan. Used by one trainer thread; Cancel and the counters by any.
//
//   client->Start(plan);    // then as in Parameters
class PsClient : public Parameters, private StepMachine::Sink, private ServerConnections::Handler {
 public:
  // Where tensors live. Called from the client's threads; must outlive it.
  class TensorMemory {
   public:
    virtual ~TensorMemory() = default;
    // Where the weights from element `offset` on belong. The client writes them, in pieces, while the trainer does not
    // use them: from PushElements or PushTensor until AwaitElements or AwaitTensor, or in BeginStep alone
    // (keep_weights).
    virtual float* Weights(int tensor, int64_t offset) = 0;
    // The gradient, which stays unchanged until the push is acknowledged: until it was awaited for the next step.
    // But if it is sent as it is, PushElements and PushTensor add what error feedback has kept (GradientEncoder).
    virtual float* Gradient(int tensor, int64_t offset) = 0;
  };

  struct Options {
    v1::JobDescription job;
    v1::TaskId task;
    // How it proves that it belongs to the job, and whom it believes to. Null: it does not, and everybody.
    std::shared_ptr<const TaskSecurity> security = nullptr;
    // Names of the model's tensors, in its order.
    std::vector<std::string> tensors;
    // The model's tables, and the job's seed, with which their keys are hashed.
    std::vector<TableSpec> tables;
    uint64_t seed = 0;
    // Fail with NotFiniteError when a server found a gradient that is not finite.
    bool stop_on_non_finite = false;
    // Of payload; four times as many if a server on this host reads tensors where they are.
    int64_t message_bytes = 1 << 20;
    // Streams to each server.
    int connections_per_server = 1;
    // Null: gradients are sent as they are.
    std::shared_ptr<GradientEncoder> encoder;
    // What servers on this host are offered to read gradients from, if TensorMemory has them in there. What is said of
    // tables is put there as long as there is room. Null: all goes over TCP.
    std::shared_ptr<SharedArena> arena;
    // Servers are reached through it. Null: as they are.
    std::shared_ptr<LinkRelay> link;
    // A step that waits for longer fails with the names of those it waits for.
    absl::Duration wait_timeout = absl::Seconds(600);
    // A server that cannot be reached for longer is given up.
    absl::Duration reconnect_timeout = absl::Seconds(60);
    const Clock* clock = nullptr;
    Logger* log = nullptr;
    TensorMemory* memory = nullptr;
    // A step's weights stay in memory until the trainer is done with them (LetGoOfWeights, or BeginStep); until then
    // the next ones stay where they have come to. Otherwise each goes to its place as it comes.
    bool keep_weights = false;
    // Gets each batch's exchange with its server. Null: nobody does.
    TraceRecorder* trace = nullptr;
  };

  struct Counters {
    int64_t sent_bytes = 0;
    int64_t received_bytes = 0;
    int64_t non_finite = 0;
    // Answered messages with a gradient, and with weights.
    int64_t pushes = 0;
    int64_t pulls = 0;
    // Steps by version staleness (the largest over their chunks); the last entry takes all above.
    std::vector<int64_t> staleness;
    // Whom the trainer waits for now; empty when it does not wait, or does not know yet.
    std::string waiting_for;
    // For how long it has waited until now; zero when it does not wait.
    absl::Duration waiting;
    // How long the trainer waited for the first step of the current generation.
    absl::Duration entry_wait;
  };

  explicit PsClient(Options options);
  ~PsClient() override;

  // Asks for the plan's first step.
  void Start(const v1::Plan& plan);

  Step next_step() override;
  absl::StatusOr<bool> AwaitTensor(int tensor) override { return AwaitElements(tensor, kAllElements); }
  absl::StatusOr<bool> AwaitElements(int tensor, int64_t elements) override;
  void Restart() override;
  absl::StatusOr<bool> BeginStep(Step* step) override;
  void PushTensor(int tensor, const Pushed& pushed) override;
  void PushElements(int tensor, int64_t elements, const Pushed& pushed) override;
  void AskRows(int table, const std::vector<uint64_t>& keys) override;
  absl::StatusOr<bool> AwaitRows(int table) override;
  const float* rows(int table) override;
  void PushRows(int table, const std::vector<uint64_t>& keys, const std::vector<float>& gradients,
                const Pushed& pushed) override;
  absl::Status AwaitAcknowledgements() override;

  // As AwaitTensor, of all tensors. False also when `enough` holds, which is looked at several times a second and must
  // not call the client; moved() says which it was.
  absl::StatusOr<bool> AwaitAll(const std::function<bool()>& enough);
  // As AwaitAll, of more than the model's first `tensors`: how many of the first ones are in place then; `tensors`
  // where the step was moved, or `enough` holds.
  absl::StatusOr<int> AwaitMore(int tensors, const std::function<bool()>& enough);
  bool moved();
  // By chunk of the tensor: the version of the weights that the model has. REQUIRES: they are in place.
  std::vector<int64_t> Versions(int tensor);

  // With keep_weights, after all was pushed: the trainer does nothing more with the step's weights but wait for the
  // next ones, which go to their places as they come.
  absl::Status LetGoOfWeights();
  // With keep_weights, between BeginStep and the tensor's push: whether its memory has the step's weights, bit by bit.
  bool HasWeights(int tensor);

  // Has the trainer's wait look again whether there is `enough`. Any thread.
  void Wake() { WakeTrainer(); }
  // Ends every wait, now and later, with `status`.
  void Cancel(absl::Status status);

  Counters counters();
  // Whether all servers that are connected are reached through shared memory.
  bool uses_shared_memory() { return connections_.all_share_memory(); }

 private:
  // What was asked of a table at a time.
  // Keys in a message, and their gradients if they are pushed. Not changed any more, so that it may be sent again.
  struct SentKeys {
    size_t count = 0;
    size_t bytes = 0;
    std::shared_ptr<const uint64_t[]> data;
  };
  struct Asked {
    // By batch of the table.
    std::vector<KeyPart> parts;
    std::vector<SentKeys> keys;
    std::unique_ptr<float[]> rows;
  };
  // A batch of a table's shards.
  struct RowBatch {
    int table = 0;
    // Its position in Asked::parts.
    size_t part = 0;
    // Of the current step.
    SentKeys pushed;
    // What the request asks for that is on its way, and whether what the trainer asked for last is there.
    std::shared_ptr<Asked> in_flight;
    bool is_there = false;
  };

  void AddTables();
  std::shared_ptr<Asked> Ask(const TableParts& table, const std::vector<uint64_t>& keys) const;
  // The part's keys with their gradients, encoded by the table's `push`, or without. Where servers on this host can
  // read them, if there is room.
  SentKeys MakeSent(const TableParts& table, const KeyPart& part, const uint64_t* keys, const float* gradients) const;
  // Says where in shared memory it is; false if it is not there.
  bool AddSpan(const SentKeys& sent, v1::ExchangeRequest* header) const;
  RowBatch& RowsOf(int batch) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return row_batches_[batch - tensor_batches_]; }
  bool HasRows(int batch) const { return batch >= tensor_batches_; }
  // Says of a table what a request is about, and where in shared memory that is, or adds it to the payload.
  void AddRows(int batch, const SharedMemoryLink* memory, v1::ExchangeRequest* header,
               std::vector<grpc::Slice>* payload) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // The rows of an OK answer go to their places; asks again if others are wanted by now.
  absl::Status TakeRows(int batch, const DecodedReply& reply, const SharedRegion* memory)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void AskAgainIfNeeded(int batch) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // A step begins: those that it needs have been read, and nothing is asked for.
  void ForgetRows() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // The name of the batch's first tensor, or its table.
  const std::string& FirstOf(int batch) const;
  void Send(const StepMachine::Request& request) override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void OnMessages(int connection, std::vector<grpc::ByteBuffer> messages,
                  std::shared_ptr<const SharedMemoryLink> memory) override;
  void OnConnected(int connection) override;
  void OnUnreachable(absl::Status status) override;
  std::vector<bool> AwaitsAnswer() override;
  float* Gradient(uint32_t chunk) const;
  v1::Codec CodecOf(uint32_t chunk) const;
  // Encodes the gradients of a batch whose push is due, for as often as it is sent: the messages are used by the
  // trainer's thread until the push, and only read until it is acknowledged.
  void EncodeBatch(const ChunkBatch& batch, int64_t step, bool compress);
  // A chunk's gradient as it is sent; empty if the worker has none.
  ByteSpan EncodedGradient(uint32_t chunk) const;
  bool IsAbsent(uint32_t chunk) const { return absent_[options_.job.chunks(static_cast<int>(chunk)).tensor()]; }
  // What a push message says besides its chunks' gradients.
  void DescribePush(const StepMachine::Request& request, v1::PushPull* push) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Pushes batches whose messages wait for FlushAll of the connections, so that those to one server travel together.
  void QueuePushes(const std::vector<int>& batches) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Sends what is queued or waits for rows.
  void SendQueued() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Whether they cost little beside a message of rows that they travel with.
  static constexpr int64_t kWithRowsBytesMax = int64_t{8} << 10;
  bool AreSmall(const std::vector<int>& batches) const;
  void AddHyperparameters(int batch, const v1::GroupHyperparameters& added) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // `memory` is shared with the batch's server, or null.
  grpc::ByteBuffer MakeRequest(const StepMachine::Request& request, const SharedMemoryLink* memory)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void AddGradients(const ChunkBatch& batch, const SharedMemoryLink* memory, v1::ExchangeRequest* header,
                    std::vector<grpc::Slice>* payload) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // The job has failed with what came on a connection.
  void FailOn(int connection, const absl::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Weights that an OK answer brought, on their way to their place.
  struct Arrival {
    int batch = -1;
    const v1::ExchangeReply* header = nullptr;
    std::vector<ArrivedWeights> weights;
    int64_t bytes = 0;  // Of all of them.
    // Whether they are to be stored, and how that went.
    bool stores = true;
    absl::Status stored;
  };
  // Takes an answer; `decoded`: whether it is one. If it brought weights, they are the last of `arrivals` from now on,
  // and nobody asks for them again before EndStore. Returns how many bytes they have.
  int64_t BeginStore(int connection, const absl::Status& decoded, const DecodedReply& reply,
                     const SharedMemoryLink* memory, std::vector<Arrival>* arrivals) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // `came`: when the answer did.
  void EndStore(int connection, const std::shared_ptr<const SharedMemoryLink>& memory, absl::Time came,
                Arrival* arrival) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Writes the weights to their place. The trainer does not use them meanwhile.
  absl::Status Store(int batch, const std::vector<ArrivedWeights>& weights);
  // With keep_weights: the same with all that has come and is not there yet.
  absl::Status StoreKept() ABSL_LOCKS_EXCLUDED(mu_);
  void TakeReply(int batch, const v1::ExchangeReply& reply) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Fail(absl::Status status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Records the exchange of a batch, whose answer came at `arrived` and is in place now.
  void Trace(int batch, int64_t received_bytes, absl::Time arrived) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  const std::string& ServerOf(int batch) const { return connections_.name(connection_of_batch_[batch]); }
  // Whether at least the tensor's first `elements` are in place.
  static constexpr int64_t kAllElements = std::numeric_limits<int64_t>::max();
  bool IsThere(int tensor, int64_t elements = kAllElements) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Makes what is final of a tensor's gradient ready, its first `elements`, and returns the batches that are complete
  // with that, encoded.
  std::vector<int> Prepare(int tensor, int64_t elements, const Pushed& pushed) ABSL_LOCKS_EXCLUDED(mu_);
  // Wakes the trainer if what it waits for is there: for messages that came together once, but for so many bytes of
  // weights at the latest. Messages that say where in shared memory weights are come together though these are large,
  // and the first layer may begin while the others are put in place.
  void WakeTrainer() ABSL_LOCKS_EXCLUDED(mu_);
  static constexpr int64_t kToldAfterBytes = int64_t{128} << 10;
  // Waits until `done`; the trainer's only wait.
  absl::Status AwaitLocked(const std::function<bool()>& done) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const Options options_;
  const Batching batching_;
  // Weights that arrive are out of the caches when the step comes to them.
  const bool is_large_model_;
  // Batches of tensors, behind which those of tables are.
  int tensor_batches_ = 0;
  std::vector<TableParts> tables_;
  // Of options_.arena, for what is said of tables. Null: there is none.
  std::shared_ptr<SharedBlocks> blocks_;
  // By batch.
  std::vector<int> connection_of_batch_;

  Mutex mu_;
  CondVar changed_;
  // What the trainer waits for; null when it does not.
  const std::function<bool()>* awaited_ ABSL_GUARDED_BY(mu_) = nullptr;
  // Of weights that were put in place since the trainer was last woken, or was not to be.
  int64_t untold_bytes_ ABSL_GUARDED_BY(mu_) = 0;
  StepMachine machine_ ABSL_GUARDED_BY(mu_);
  absl::Status failed_ ABSL_GUARDED_BY(mu_);
  bool stop_ ABSL_GUARDED_BY(mu_) = false;
  // By tensor: whether the worker has no gradient of it in the current step. The trainer's thread writes it before the
  // tensor's batches are pushed.
  std::vector<uint8_t> absent_;
  // By chunk: the version of the weights that the model has.
  std::vector<int64_t> versions_ ABSL_GUARDED_BY(mu_);
  // By batch: tensors of the current step whose gradients are still to come; whether an answer is being copied into
  // place, outside the lock.
  std::vector<int> missing_tensors_ ABSL_GUARDED_BY(mu_);
  // By tensor: how many elements of its gradient of the current step have been pushed, from the first.
  std::vector<int64_t> pushed_elements_ ABSL_GUARDED_BY(mu_);
  std::vector<bool> storing_ ABSL_GUARDED_BY(mu_);
  // With keep_weights, by batch: what has come last, until its gradient is pushed. Null: nothing.
  struct KeptWeights {
    std::vector<ArrivedWeights> weights;
    // Where they are; null: in messages.
    std::shared_ptr<const SharedMemoryLink> memory;
  };
  std::vector<std::shared_ptr<const KeptWeights>> kept_ ABSL_GUARDED_BY(mu_);
  // By batch: whether they are still to be put in place; and whether what comes now goes there at once.
  std::vector<bool> to_store_ ABSL_GUARDED_BY(mu_);
  bool lets_go_ ABSL_GUARDED_BY(mu_) = false;
  // Tensors and tables of the current step that are still to be pushed.
  struct MissingPushes {
    size_t tensors = 0, tables = 0;
  };
  MissingPushes missing_pushes_ ABSL_GUARDED_BY(mu_);
  // The step's last tensors, which are small: rows, which the next step needs first, are about to be pushed, and would
  // wait for these messages.
  std::vector<int> waits_for_rows_ ABSL_GUARDED_BY(mu_);
  // What is sent is queued.
  bool sends_together_ ABSL_GUARDED_BY(mu_) = false;
  ExchangeTrace trace_ ABSL_GUARDED_BY(mu_);
  // Since when the trainer waits; InfiniteFuture when it does not.
  absl::Time waits_since_ ABSL_GUARDED_BY(mu_) = absl::InfiniteFuture();
  // Examples of its contribution to the current step, and the hyperparameters of its groups.
  std::vector<uint64_t> examples_ ABSL_GUARDED_BY(mu_);
  std::vector<std::vector<v1::GroupHyperparameters>> hyperparameters_ ABSL_GUARDED_BY(mu_);
  // Of the step that was begun last.
  bool compress_ ABSL_GUARDED_BY(mu_) = true;
  double epoch_ ABSL_GUARDED_BY(mu_) = 0;
  v1::ShardSlice slice_ ABSL_GUARDED_BY(mu_);
  int64_t step_staleness_ ABSL_GUARDED_BY(mu_) = -1;
  absl::Duration step_wait_ ABSL_GUARDED_BY(mu_);
  Counters counters_ ABSL_GUARDED_BY(mu_);
  // The request that is made: kept, as memory of its entries is used again.
  v1::ExchangeRequest request_header_ ABSL_GUARDED_BY(mu_);
  // By table, what the trainer asked for last; never null.
  std::vector<std::shared_ptr<Asked>> asked_ ABSL_GUARDED_BY(mu_);
  std::vector<RowBatch> row_batches_ ABSL_GUARDED_BY(mu_);
  ServerConnections connections_;  // Last: its threads use everything above.
};

}  // namespace rubato::worker

#endif  // RUBATO_WORKER_PS_CLIENT_PS_CLIENT_H_
