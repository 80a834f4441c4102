// A client's job: its chunks begin with what a worker assigns, and checkpoint "step0" is written then.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/storage/checkpoint.h"
#include "common/storage/file.h"
#include "server/rules/testing/builders.h"
#include "server/testing/server_core_harness.h"

namespace rubato::server {
namespace {

using ::testing::HasSubstr;
using Reply = v1::ExchangeReply;

class ServerAssignTest : public ServerCoreHarness {
 protected:
  ServerAssignTest()
      : run_(JoinPath(testing::TempDir(), absl::StrCat("server_assign_test_",
                                                       testing::UnitTest::GetInstance()->current_test_info()->name()))),
        stream_(std::make_shared<FakeConnection>(1)) {
    EXPECT_TRUE(MakeDirectories(run_).ok());
    config_.set_run_directory(run_);
    config_.clear_model();
    v1::Manifest* manifest = config_.mutable_model()->mutable_manifest();
    manifest->set_groups(2);
    v1::ManifestTensor* weight = manifest->add_tensors();
    weight->set_name("weight");
    weight->add_shape(2 * kLength);
    manifest->add_tensors()->set_name("bias");
    manifest->mutable_tensors(1)->set_group(1);
    job_.add_servers()->mutable_task()->set_role(v1::TaskId::SERVER);
    *job_.mutable_initial_weights_from() = Worker(0);
  }

  void Start() {
    MakeCore();
    ASSERT_TRUE(core_->StartJob(job_).ok());
    Commit(MakePlan(1, v1::SYNC, 0, {0, 1}));
  }
  v1::ExchangeRequest Header(uint32_t worker, uint32_t chunk) {
    v1::ExchangeRequest header;
    header.set_request_id(++last_request_);
    *header.mutable_task() = Worker(worker);
    header.set_job_fingerprint(77);
    header.set_generation(1);
    header.set_partition(job_.chunks(static_cast<int>(chunk)).partition());
    return header;
  }
  // Sends all elements of a chunk as `value`.
  Reply Assign(uint32_t worker, uint32_t chunk, float value) {
    v1::ExchangeRequest header = Header(worker, chunk);
    header.mutable_assign()->add_chunks(chunk);
    return Exchange(std::move(header), std::vector<float>(job_.chunks(static_cast<int>(chunk)).length(), value));
  }
  Reply AssignSlot(uint32_t worker, uint32_t chunk, uint32_t slot, float value) {
    v1::ExchangeRequest header = Header(worker, chunk);
    header.mutable_assign()->add_chunks(chunk);
    header.mutable_assign()->set_slot(slot);
    return Exchange(std::move(header), std::vector<float>(job_.chunks(static_cast<int>(chunk)).length(), value));
  }
  // The weights, of an optimizer that has made so many steps.
  Reply AssignAfter(uint32_t worker, uint32_t chunk, float value, int64_t updates) {
    v1::ExchangeRequest header = Header(worker, chunk);
    header.mutable_assign()->add_chunks(chunk);
    header.mutable_assign()->add_updates(updates);
    return Exchange(std::move(header), std::vector<float>(job_.chunks(static_cast<int>(chunk)).length(), value));
  }
  // What the server keeps of a chunk, and the updates that it says.
  std::vector<float> Slot(uint32_t chunk, uint32_t slot, int64_t* updates) {
    v1::ExchangeRequest header = Header(1, chunk);
    header.mutable_snapshot()->set_at_step(-1);
    header.mutable_snapshot()->set_slot(slot);
    header.mutable_snapshot()->add_chunks(chunk);
    const Reply reply = Exchange(std::move(header), {});
    EXPECT_EQ(reply.outcome(), Reply::OK) << reply.message();
    EXPECT_EQ(reply.chunks_size(), 1);
    *updates = reply.chunks_size() == 1 ? reply.chunks(0).updates() : -1;
    return stream_->payload();
  }
  // A push of step 0 with a gradient of ones and the rate of the chunk's group.
  void PushWithRate(uint32_t worker, uint32_t chunk, double rate) {
    v1::ExchangeRequest header = Header(worker, chunk);
    v1::PushPull* push = header.mutable_push_pull();
    push->set_examples(8);
    push->add_chunks()->set_chunk(chunk);
    push->mutable_chunks(0)->set_length(job_.chunks(static_cast<int>(chunk)).length());
    push->add_groups()->set_group(chunk == 2 ? 1 : 0);
    push->mutable_groups(0)->set_learning_rate(rate);
    Send(std::move(header), std::vector<float>(job_.chunks(static_cast<int>(chunk)).length(), 1.0f));
  }
  void Send(v1::ExchangeRequest header, const std::vector<float>& payload) {
    std::vector<grpc::Slice> slices;
    slices.emplace_back(payload.data(), payload.size() * sizeof(float));
    core_->OnMessage(stream_, EncodeRequest(header, std::move(slices)));
  }
  Reply Exchange(v1::ExchangeRequest header, const std::vector<float>& payload) {
    const size_t answers = stream_->count();
    Send(std::move(header), payload);
    return stream_->Await(answers + 1);
  }
  void WriteCheckpoint(const std::string& name) {
    v1::Directive directive;
    directive.mutable_checkpoint()->set_name(name);
    core_->OnDirective(directive);
  }
  // The values of a chunk in a checkpoint that is complete.
  std::vector<float> ValuesIn(const std::string& name, uint32_t chunk) {
    const absl::StatusOr<CheckpointPart> part =
        ReadCheckpointPart(JoinPath(JoinPath(run_, "checkpoints"), name), v1::TaskId::SERVER, 0);
    EXPECT_TRUE(part.ok()) << part.status();
    if (!part.ok()) return {};
    const v1::ChunkRecord& record = part->manifest.chunks(static_cast<int>(chunk));
    std::vector<float> values(record.length());
    part->Copy(record.values_at(), record.length(), values.data());
    return values;
  }

  const std::string run_;
  const std::shared_ptr<FakeConnection> stream_;
};

TEST_F(ServerAssignTest, TheFirstCheckpointWaitsUntilAllChunksAreAssigned) {
  Start();
  WriteCheckpoint("step0");
  EXPECT_EQ(Assign(0, 0, 5).outcome(), Reply::OK);
  EXPECT_EQ(Assign(0, 2, 7).outcome(), Reply::OK);
  EXPECT_EQ(Assign(0, 0, 6).outcome(), Reply::OK);  // Repeated: changes nothing.
  Settle();
  EXPECT_FALSE(ReadCheckpointPart(JoinPath(run_, "checkpoints/step0"), v1::TaskId::SERVER, 0).ok());
  EXPECT_EQ(Assign(0, 1, 3).outcome(), Reply::OK);
  EXPECT_EQ(AwaitReport(v1::TaskMessage::kCheckpointDone).checkpoint_done().name(), "step0");
  EXPECT_EQ(ValuesIn("step0", 0), std::vector<float>(kLength, 5));
  EXPECT_EQ(ValuesIn("step0", 1), std::vector<float>(kLength, 3));
  EXPECT_EQ(ValuesIn("step0", 2), std::vector<float>(1, 7));
}

TEST_F(ServerAssignTest, RowsOfTablesAwaitNothing) {
  v1::TableConfig* table = config_.mutable_model()->mutable_manifest()->add_tables();
  table->set_name("users");
  table->set_dimension(4);
  table->set_algorithm(v1::TableConfig::SGD);
  table->set_learning_rate(1);
  table->set_shards(1);
  job_.add_chunks()->set_tensor(2);
  Start();
  WriteCheckpoint("step0");
  for (uint32_t chunk : {0u, 1u, 2u}) EXPECT_EQ(Assign(0, chunk, 5).outcome(), Reply::OK);
  EXPECT_EQ(AwaitReport(v1::TaskMessage::kCheckpointDone).checkpoint_done().name(), "step0");
  const absl::StatusOr<CheckpointPart> part =
      ReadCheckpointPart(JoinPath(run_, "checkpoints/step0"), v1::TaskId::SERVER, 0);
  ASSERT_TRUE(part.ok()) << part.status();
  ASSERT_EQ(part->manifest.shards_size(), 1);
  EXPECT_EQ(part->manifest.shards(0).table(), "users");
}

TEST_F(ServerAssignTest, OnlyTheNamedWorkerAssigns) {
  Start();
  const Reply early = Assign(1, 0, 5);
  EXPECT_EQ(early.outcome(), Reply::WAITING);
  EXPECT_THAT(early.message(), HasSubstr("worker 0"));
  *job_.mutable_initial_weights_from() = Worker(1);
  EXPECT_TRUE(core_->StartJob(job_).ok());
  EXPECT_EQ(Assign(1, 0, 5).outcome(), Reply::OK);
}

TEST_F(ServerAssignTest, AJobThatHasItsWeightsFromElsewhereAssignsNone) {
  config_.clear_model();
  config_.mutable_model()->add_input_shape(2 * kLength);
  config_.mutable_model()->add_layers()->mutable_linear()->set_units(1);
  config_.mutable_model()->set_loss(v1::ModelConfig::MEAN_SQUARED_ERROR);
  Start();
  const Reply refused = Assign(0, 0, 5);
  EXPECT_EQ(refused.outcome(), Reply::REFUSED);
  EXPECT_THAT(refused.message(), HasSubstr("assign"));
  WriteCheckpoint("step0");
  AwaitReport(v1::TaskMessage::kCheckpointDone);
}

TEST_F(ServerAssignTest, AJobGoesBackToTheWeightsThatWereAssigned) {
  Start();
  WriteCheckpoint("step0");
  for (uint32_t chunk = 0; chunk < 3; ++chunk) Assign(0, chunk, 5);
  AwaitReport(v1::TaskMessage::kCheckpointDone);
  job_.mutable_restore()->set_name("step0");
  job_.add_restore_servers(0);
  Start();
  EXPECT_EQ(Assign(0, 0, 6).outcome(), Reply::REFUSED);
  WriteCheckpoint("final");
  while (AwaitReport(v1::TaskMessage::kCheckpointDone).checkpoint_done().name() != "final") Settle();
  EXPECT_EQ(ValuesIn("final", 0), std::vector<float>(kLength, 5));
}

TEST_F(ServerAssignTest, AnOptimizersStateComesWithTheWeightsAndCanBeFetched) {
  config_.mutable_optimizer()->set_algorithm(v1::OptimizerConfig::ADAM);
  Start();
  EXPECT_EQ(AssignSlot(1, 0, 1, 9).outcome(), Reply::WAITING);
  EXPECT_EQ(AssignSlot(0, 0, 1, 0.5f).outcome(), Reply::OK);
  EXPECT_EQ(AssignSlot(0, 0, 2, 0.25f).outcome(), Reply::OK);
  EXPECT_EQ(AssignAfter(0, 0, 3, 7).outcome(), Reply::OK);
  EXPECT_EQ(AssignSlot(0, 0, 2, 8).outcome(), Reply::OK);  // Repeated late: changes nothing.
  int64_t updates = 0;
  EXPECT_EQ(Slot(0, 1, &updates), std::vector<float>(kLength, 0.5f));
  EXPECT_EQ(updates, 7);
  EXPECT_EQ(Slot(0, 2, &updates), std::vector<float>(kLength, 0.25f));
  EXPECT_EQ(Slot(0, 0, &updates), std::vector<float>(kLength, 3));
}

TEST_F(ServerAssignTest, AWorkerWithoutStateThatTakesOverBeginsWithNone) {
  config_.mutable_optimizer()->set_algorithm(v1::OptimizerConfig::ADAM);
  Start();
  EXPECT_EQ(AssignSlot(0, 0, 1, 0.5f).outcome(), Reply::OK);
  *job_.mutable_initial_weights_from() = Worker(1);
  EXPECT_TRUE(core_->StartJob(job_).ok());
  EXPECT_EQ(Assign(1, 0, 5).outcome(), Reply::OK);
  int64_t updates = -1;
  EXPECT_EQ(Slot(0, 1, &updates), std::vector<float>(kLength, 0));
  EXPECT_EQ(updates, 0);
}

TEST_F(ServerAssignTest, ASlotIsFetchedAsItIsThen) {
  config_.mutable_optimizer()->set_algorithm(v1::OptimizerConfig::MOMENTUM);
  Start();
  for (uint32_t chunk = 0; chunk < 3; ++chunk) Assign(0, chunk, 5);
  for (uint32_t worker = 0; worker < 2; ++worker) Pull(stream_, worker, 0, 0);
  stream_->Await(5);
  int64_t updates = -1;
  EXPECT_EQ(Slot(0, 1, &updates), std::vector<float>(kLength, 0));
  EXPECT_EQ(updates, 0);
  PushWithRate(0, 0, 1);
  PushWithRate(1, 0, 1);
  stream_->Await(8);
  EXPECT_EQ(Slot(0, 1, &updates), std::vector<float>(kLength, 1));
  EXPECT_EQ(updates, 1);
}

TEST_F(ServerAssignTest, WhatTheOptimizerDoesNotHaveIsRefused) {
  Start();
  const Reply slot = AssignSlot(0, 0, 1, 1);
  EXPECT_EQ(slot.outcome(), Reply::REFUSED);
  EXPECT_THAT(slot.message(), HasSubstr("assign.slot: 1; the job's optimizer has 0 slots"));
  EXPECT_THAT(AssignAfter(0, 0, 1, -1).message(), HasSubstr("assign.updates"));
}

TEST_F(ServerAssignTest, AStepTakesTheHyperparametersOfTheLowestMember) {
  Start();
  for (uint32_t chunk = 0; chunk < 3; ++chunk) Assign(0, chunk, 5);
  for (uint32_t worker = 0; worker < 2; ++worker) Pull(stream_, worker, 0, 0);
  for (uint32_t worker = 0; worker < 2; ++worker) Pull(stream_, worker, 2, 0);
  stream_->Await(7);
  PushWithRate(1, 0, 3);
  PushWithRate(0, 0, 2);
  PushWithRate(1, 2, 0.25);
  PushWithRate(0, 2, 0.25);
  stream_->Await(11);
  EXPECT_EQ(Progress().hyperparameter_disagreements_total(), 1);
  WriteCheckpoint("final");
  AwaitReport(v1::TaskMessage::kCheckpointDone);
  EXPECT_EQ(ValuesIn("final", 0), std::vector<float>(kLength, 3));
  EXPECT_EQ(ValuesIn("final", 2), std::vector<float>(1, 4.75f));
}

}  // namespace
}  // namespace rubato::server
