#include "tests/simulation/sim_partition.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/table_keys.h"
#include "common/task.h"
#include "common/wire/exchange_codec.h"
#include "server/rules/update_mix.h"
#include "tests/simulation/messages.h"
#include "tests/simulation/sim_push.h"

namespace rubato::simulation {

using Kind = server::PartitionRequest::Kind;

namespace {

constexpr uint64_t kTableParts = 256;
constexpr size_t kCountersOfPart = kAdmissionCounters / kTableParts;
constexpr size_t kWordsOfPart = 1 + kCountersOfPart / sizeof(uint64_t);

// Of so many parts from one on, as a server saves them: for each a word with the pushes, and then a byte a counter.
std::vector<uint64_t> WordsOf(const PushCounts& counts, const std::pair<uint64_t, uint64_t>& parts) {
  std::vector<uint64_t> words(parts.second * kWordsOfPart);
  for (const auto& [part, numbers] : counts) {
    uint64_t* const saved = words.data() + (part - parts.first) * kWordsOfPart;
    saved[0] = numbers[0];
    for (size_t i = 0; i < kCountersOfPart; ++i) saved[1 + i / 8] |= uint64_t{numbers[1 + i]} << (8 * (i % 8));
  }
  return words;
}

PushCounts CountsOf(const std::vector<uint64_t>& words, uint64_t first_part) {
  PushCounts counts;
  for (size_t part = 0; part < words.size() / kWordsOfPart; ++part) {
    const uint64_t* const saved = words.data() + part * kWordsOfPart;
    if (std::all_of(saved, saved + kWordsOfPart, [](uint64_t word) { return word == 0; })) continue;
    std::vector<uint32_t>& numbers = counts[first_part + part];
    numbers.push_back(static_cast<uint32_t>(saved[0]));
    for (size_t i = 0; i < kCountersOfPart; ++i) numbers.push_back(saved[1 + i / 8] >> (8 * (i % 8)) & 0xff);
  }
  return counts;
}

}  // namespace

SimPartition::SimPartition(const Options& options, std::unique_ptr<server::TableStore> tables)
    : options_(options),
      world_(options.world),
      oracle_(&options.world->oracle),
      rules_(options.chunks, options.world->scenario.timeout, this),
      tables_(std::move(tables)) {}

void SimPartition::Restore(uint32_t chunk, const ChunkState& state) {
  ChunkState& weights = weights_[chunk] = state;
  if (tables_->Has(chunk)) {
    v1::ShardRecord record;
    record.set_version(state.version);
    std::vector<uint64_t> keys;
    std::vector<float> rows;
    for (const auto& [key, row] : std::exchange(weights.rows, {})) {
      keys.push_back(key);
      rows.insert(rows.end(), row.begin(), row.end());
    }
    const std::vector<uint64_t> counts = WordsOf(std::exchange(weights.counts, {}), PartsOf(chunk));
    const absl::Status restored =
        tables_->Restore(chunk, {.record = record, .keys = keys, .rows = rows, .push_counts = counts});
    if (!restored.ok()) oracle_->Violate(absl::StrCat("I7: ", name(), " restores no rows: ", restored.message()));
  }
  rules_.Restore(chunk, state.version);
  oracle_->Restored(options_.place, chunk, StateOf(chunk));
}

void SimPartition::FinishTables() const {
  const absl::Status applied = tables_->Finish();
  if (!applied.ok()) oracle_->Violate(absl::StrCat("I1: rows are not updated: ", applied.message()));
}

ChunkState SimPartition::StateOf(uint32_t chunk) const {
  ChunkState state = weights_.at(chunk);
  if (!tables_->Has(chunk)) return state;
  FinishTables();
  const std::shared_ptr<const server::ShardSnapshot> shard = tables_->Keep(chunk);
  const uint32_t floats = shard->record.row_floats();
  for (size_t i = 0; i < shard->keys->size(); ++i) {
    const auto row = shard->rows->begin() + static_cast<int64_t>(i * floats);
    state.rows.emplace((*shard->keys)[i], std::vector<float>(row, row + floats));
  }
  state.counts = CountsOf(shard->push_counts, PartsOf(chunk).first);
  return state;
}

std::pair<uint64_t, uint64_t> SimPartition::PartsOf(uint32_t chunk) const {
  if (world_->scenario.rows_admit_after == 1) return {};
  const uint64_t parts = kTableParts / world_->scenario.shards;
  return {(chunk - world_->scenario.chunks) * parts, parts};
}

std::shared_ptr<const server::TableMessage> SimPartition::ReadRows(const RowMessage& rows,
                                                                   server::PartitionRequest* request) {
  const bool pushes = std::any_of(request->contributions.begin(), request->contributions.end(),
                                  [](const server::Contribution& push) { return push.examples > 0; });
  const DecodedRequest message = {.header = {},
                                  .payload = PayloadView({grpc::Slice(rows.payload)}, 0, rows.payload.size())};
  auto table = server::ReadTable(rows.keys, pushes, request->chunks, message, /*region=*/nullptr,
                                 {.model = &world_->model, .seed = world_->config.seed()}, world_->job);
  if (!table.ok()) {
    oracle_->Violate(absl::StrCat("I4: a message about rows is refused: ", table.status().message()));
    return nullptr;
  }
  for (size_t i = 0; i < request->contributions.size() && pushes; ++i) {
    request->contributions[i].gradient = {*table, &(*table)->by_chunk[i]};
  }
  return *std::move(table);
}

void SimPartition::HandOutRows(const server::TableMessage& table) {
  std::vector<float> rows(table.asked.size() * kRowDimension);
  if (!table.asked.empty()) tables_->Lookup(table.table, table.asked, rows.data());
  const KeyHash hash = HashOfTable(world_->config.seed(), table.table);
  std::vector<uint64_t> keys;
  for (const uint64_t asked : table.asked) keys.push_back(hash.KeyOf(asked));
  oracle_->RowsHandedOut(options_.place, world_->scenario, keys, rows);
}

void SimPartition::OnAssign(const v1::TaskId& worker, const std::vector<uint32_t>& chunks, const SendReply& send) {
  const server::Assignment::Answer taken = assignment_.OnAssign(worker, chunks);
  world_->trace.Add(name(), ": ", TaskName(worker), " #", worker.incarnation(), " assigns ", absl::StrJoin(chunks, ","),
                    ": ", v1::ExchangeReply::Outcome_Name(taken.outcome), ", takes ", absl::StrJoin(taken.taken, ","));
  if (!taken.taken.empty() && rules_.highest_begun() >= 0) {
    oracle_->Violate(absl::StrCat("I1: weights are assigned to ", name(), " after a step has begun there"));
  }
  v1::ExchangeReply reply;
  reply.set_outcome(taken.outcome);
  send(reply);
}

void SimPartition::TraceRequest(const server::PartitionRequest& request) const {
  if (!world_->trace.on()) return;
  const char* what = request.kind == Kind::kPushPull   ? " pushes "
                     : request.kind == Kind::kSnapshot ? " looks at "
                                                       : " pulls ";
  world_->trace.Add(name(), ": ", TaskName(request.task), " #", request.task.incarnation(), what, request.step,
                    " of generation ", request.generation, ", chunks ", absl::StrJoin(request.chunks, ","), " [",
                    request.token, "]");
}

void SimPartition::OnRequest(server::PartitionRequest request, const std::optional<RowMessage>& rows, SendReply send) {
  request.token = ++world_->last_token;
  std::shared_ptr<const server::TableMessage> table;
  if (rows.has_value()) {
    table = ReadRows(*rows, &request);
    if (table == nullptr) return;
  }
  Oracle::Request seen;
  seen.place = options_.place;
  seen.snapshot = request.kind == Kind::kSnapshot;
  seen.push = request.kind == Kind::kPushPull;
  seen.task = request.task;
  seen.generation = request.generation;
  seen.step = seen.push ? request.step + 1 : request.step;
  seen.chunks = request.chunks;
  for (const server::Contribution& push : request.contributions) seen.examples.push_back(push.examples);
  // The look at waiting requests comes in intervals, and twice as late if a tick has just passed.
  seen.deadline = world_->queue.Now() + world_->scenario.timeout + 2 * kServerTick;
  TraceRequest(request);
  open_[request.token] = {request.task, std::move(send), seen.snapshot, std::move(table)};
  oracle_->Arrived(request.token, seen);
  rules_.OnRequest(std::move(request), world_->queue.Now());
  FinishTables();
  if (seen.push) oracle_->Taken(options_.place, seen.task, seen.step - 1, seen.chunks);
}

void SimPartition::ForgetTask(const v1::TaskId& task) {
  std::vector<uint64_t> tokens;
  for (const auto& [token, open] : open_) {
    if (SameTask(open.task, task)) tokens.push_back(token);
  }
  for (uint64_t token : tokens) {
    rules_.Forget(token);
    oracle_->Forgotten(token);
    open_.erase(token);
  }
}

void SimPartition::ForgetAll() {
  for (const auto& [token, open] : open_) oracle_->Forgotten(token);
  open_.clear();
}

void SimPartition::Postpone(absl::Duration length) {
  for (const auto& [token, open] : open_) oracle_->Postponed(token, length);
}

void SimPartition::Apply(const server::ChunkRules::Update& update) {
  std::vector<v1::UpdateRecord> records;
  ChunkState& weights = weights_[update.chunk];
  ++weights.version;
  for (const server::Contribution& contribution : update.contributions) {
    records.push_back(ToRecord(update.chunk, contribution));
    weights.pushes.emplace_back(contribution.header->task.incarnation(), contribution.header->step);
  }
  oracle_->Applied(options_.place, update.chunk, records);
  if (tables_->Has(update.chunk)) {
    const absl::Status applied = tables_->Apply(update);
    if (!applied.ok()) oracle_->Violate(absl::StrCat("I1: rows are not updated: ", applied.message()));
    return oracle_->RowsUpdated(options_.place, update.chunk, world_->scenario, records);
  }
  const bool disagreement = ChangeValue(update, &weights.value);
  oracle_->Updated(options_.place, update.chunk, world_->scenario, records, {weights.value, disagreement});
}

bool SimPartition::ChangeValue(const server::ChunkRules::Update& update, double* value) const {
  const Scenario& scenario = world_->scenario;
  const server::UpdateMix mix = server::MixContributions(
      update, {.group = scenario.clients ? GroupOf(update.chunk, scenario.chunks) : 0, .is_mean = scenario.mean});
  if (!mix.has_effect) return false;
  double gradient = 0;
  for (const server::UpdateMix::Part& part : mix.parts) {
    const PushId push(part.contribution->header->task.incarnation(), part.contribution->header->step);
    gradient += part.weight * GradientOf(push, update.chunk);
  }
  const v1::OptimizerConfig optimizer = mix.hyperparameters == nullptr ? MakeOptimizer(scenario) : *mix.hyperparameters;
  *value = scenario.mean ? gradient
                         : *value - optimizer.learning_rate() * update.learning_rate_scale * mix.share_with_examples *
                                        (gradient + optimizer.weight_decay() * *value);
  return mix.disagreement;
}

void SimPartition::CaptureCut(const v1::Cut& cut, uint32_t chunk) {
  const ChunkState state = StateOf(chunk);
  world_->trace.Add(name(), ": chunk ", chunk, " is captured for cut ", cut.id(), ", version ", state.version);
  oracle_->CutCaptured(options_.place, cut, chunk, state);
  options_.on_captured(cut, chunk, state);
}

void SimPartition::Log(const v1::UpdateLogRecord& record) {
  if (world_->on_record) world_->on_record(options_.place.job, options_.place.partition, record);
  if (record.has_plan()) {
    world_->trace.Add(name(), ": plan ", record.plan().generation(), ".", record.plan().amendment(), " holds");
    oracle_->PlanHolds(options_.place, record.plan());
    if (world_->scenario.mean && record.plan().mode() != v1::SYNC) {
      oracle_->Violate(absl::StrCat("I1: plan ", record.plan().generation(), " of a job of means is not in SYNC"));
    }
    if (oracle_->IsNewest(options_.place.job)) world_->rollback.End(world_->job.servers_size());
  }
  if (!record.has_update()) return;
  const v1::UpdateRecord& update = record.update();
  world_->trace.Add(name(), ": step ", update.step(), " of worker ", update.worker(), " on chunk ", update.chunk(),
                    update.ineffective() ? " is dropped at version " : " makes version ", update.applied_version());
  oracle_->Logged(options_.place, update);
}

void SimPartition::Answer(const server::PartitionReply& reply) {
  FinishTables();
  auto node = open_.extract(reply.token);
  if (world_->trace.on()) {
    world_->trace.Add(name(), ": answers [", reply.token, "] ", v1::ExchangeReply::Outcome_Name(reply.outcome), " ",
                      v1::ExchangeReply::PushOutcome_Name(reply.push), " ", reply.next_step, " ", reply.message);
  }
  v1::ExchangeReply wire = ToWire(reply);
  std::vector<double> values;
  for (uint32_t chunk : reply.chunks) {
    v1::ChunkWeights* entry = wire.add_chunks();
    entry->set_chunk(chunk);
    entry->set_version(rules_.Find(chunk)->version());
    values.push_back(weights_[chunk].value);
  }
  if (!node.empty() && !node.mapped().snapshot && !reply.chunks.empty() && !assignment_.complete()) {
    oracle_->Violate(absl::StrCat("I1: weights of ", name(), " are handed out before all of them were assigned"));
  }
  oracle_->Answered(reply.token, wire, values);
  if (!node.empty() && node.mapped().table != nullptr && reply.outcome == v1::ExchangeReply::OK) {
    HandOutRows(*node.mapped().table);
  }
  if (!node.empty()) node.mapped().send(wire);
}

}  // namespace rubato::simulation
