#include "common/part_copies/part_store.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/clock.h"
#include "common/storage/checkpoint.h"
#include "common/storage/file.h"

namespace rubato {
namespace {

constexpr uint64_t kJob = 77;

v1::TaskId Task(v1::TaskId::Role role, uint32_t index) {
  v1::TaskId task;
  task.set_role(role);
  task.set_index(index);
  task.set_incarnation(index + 1);
  return task;
}

class PartStoreTest : public testing::Test {
 protected:
  PartStoreTest() {
    base_ = JoinPath(testing::TempDir(),
                     absl::StrCat("part_store_test_", testing::UnitTest::GetInstance()->current_test_info()->name()));
    MakeStore(64);
    store_->SetJob(kJob);
  }

  void MakeStore(size_t max_incoming) {
    store_ = std::make_unique<PartStore>(PartStore::Options{.directory = JoinPath(base_, "there"),
                                                            .task = Task(v1::TaskId::SERVER, 1),
                                                            .clock = &clock_,
                                                            .max_incoming = max_incoming});
  }

  // A part of 64 floats of checkpoint step5 and cut 3, on a disk of its own. Returns its data.
  std::string WriteOwn(const v1::TaskId& task, uint64_t cut = 3) {
    const std::string directory = JoinPath(base_, "own/step5");
    auto writer = CheckpointWriter::Create(directory, task);
    EXPECT_TRUE(writer.ok()) << writer.status();
    const std::vector<float> values(64, static_cast<float>(task.index()) + 0.5f);
    CheckpointChunk chunk;
    chunk.record.set_tensor("a");
    chunk.record.add_shape(64);
    chunk.record.set_length(64);
    chunk.values = values.data();
    EXPECT_TRUE((*writer)->Add(chunk).ok());
    v1::CheckpointManifest manifest;
    manifest.set_job_name("job");
    manifest.set_servers(3);
    manifest.mutable_cut()->set_id(cut);
    manifest.mutable_cut()->set_name("step5");
    EXPECT_TRUE((*writer)->Finish(manifest).ok());
    manifest_ = *ReadCheckpointManifest(directory, task.role(), task.index());
    return *ReadCheckpointData(directory, task.role(), task.index(), 0, 1 << 20);
  }

  static v1::PartName Name(v1::TaskId::Role role = v1::TaskId::SERVER, uint32_t index = 0) {
    v1::PartName name;
    name.set_job_fingerprint(kJob);
    name.set_checkpoint("step5");
    name.set_cut_id(3);
    name.set_role(role);
    name.set_index(index);
    return name;
  }
  v1::WritePartRequest Begin(const v1::PartName& name) const {
    v1::WritePartRequest request;
    *request.mutable_part() = name;
    *request.mutable_manifest() = manifest_;
    return request;
  }
  static v1::WritePartRequest Piece(const v1::PartName& name, uint64_t offset, const std::string& data) {
    v1::WritePartRequest request;
    *request.mutable_part() = name;
    request.set_offset(offset);
    request.set_data(data);
    return request;
  }
  absl::StatusCode CodeOf(const v1::WritePartRequest& request) { return store_->Write(request).status().code(); }
  v1::ReadPartRequest Read(uint64_t offset, uint32_t bytes) const {
    v1::ReadPartRequest request;
    *request.mutable_part() = Name();
    request.set_offset(offset);
    request.set_bytes(bytes);
    return request;
  }

  FakeClock clock_;
  std::string base_;
  std::unique_ptr<PartStore> store_;
  v1::CheckpointManifest manifest_;  // Of the part that was written last.
};

TEST_F(PartStoreTest, TakesAPartInPiecesAndGivesItOut) {
  const std::string data = WriteOwn(Task(v1::TaskId::SERVER, 0));
  ASSERT_EQ(data.size(), 256u);
  EXPECT_EQ(store_->Read(Read(0, 0)).status().code(), absl::StatusCode::kNotFound);
  ASSERT_TRUE(store_->Write(Begin(Name())).ok());
  auto reply = store_->Write(Piece(Name(), 0, data.substr(0, 200)));
  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_FALSE(reply->complete());
  EXPECT_EQ(store_->Read(Read(0, 0)).status().code(), absl::StatusCode::kNotFound);
  reply = store_->Write(Piece(Name(), 200, data.substr(200)));
  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_TRUE(reply->complete());
  // Again, and it is there already.
  reply = store_->Write(Begin(Name()));
  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_TRUE(reply->complete());

  auto piece = store_->Read(Read(0, 100));
  ASSERT_TRUE(piece.ok()) << piece.status();
  EXPECT_EQ(piece->data(), data.substr(0, 100));
  EXPECT_EQ(piece->manifest().SerializeAsString(), manifest_.SerializeAsString());
  piece = store_->Read(Read(100, 1000));
  ASSERT_TRUE(piece.ok()) << piece.status();
  EXPECT_EQ(piece->data(), data.substr(100));
  EXPECT_FALSE(piece->has_manifest());
}

TEST_F(PartStoreTest, APieceOutOfOrderBeginsAgain) {
  const std::string data = WriteOwn(Task(v1::TaskId::SERVER, 0));
  EXPECT_EQ(CodeOf(Piece(Name(), 0, data)), absl::StatusCode::kFailedPrecondition);
  ASSERT_TRUE(store_->Write(Begin(Name())).ok());
  EXPECT_EQ(CodeOf(Piece(Name(), 10, data)), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(CodeOf(Piece(Name(), 0, data)), absl::StatusCode::kFailedPrecondition);
  ASSERT_TRUE(store_->Write(Begin(Name())).ok());
  EXPECT_TRUE(store_->Write(Piece(Name(), 0, data)).ok());
  // A newer cut takes the place of one that is in flight.
  WriteOwn(Task(v1::TaskId::SERVER, 0), 4);
  v1::PartName newer = Name();
  newer.set_cut_id(4);
  ASSERT_TRUE(store_->Write(Begin(newer)).ok());
  EXPECT_EQ(CodeOf(Piece(Name(), 0, data)), absl::StatusCode::kFailedPrecondition);
}

TEST_F(PartStoreTest, DamagedDataAreNotKept) {
  std::string data = WriteOwn(Task(v1::TaskId::SERVER, 0));
  data[17] ^= 4;
  ASSERT_TRUE(store_->Write(Begin(Name())).ok());
  EXPECT_EQ(CodeOf(Piece(Name(), 0, data)), absl::StatusCode::kDataLoss);
  EXPECT_EQ(*ListDirectory(JoinPath(base_, "there/step5")), std::vector<std::string>());
}

TEST_F(PartStoreTest, RefusesWhatIsNotAPartOfTheJob) {
  WriteOwn(Task(v1::TaskId::SERVER, 0));
  v1::PartName name = Name();
  name.set_job_fingerprint(78);
  EXPECT_EQ(CodeOf(Begin(name)), absl::StatusCode::kFailedPrecondition);
  for (const char* checkpoint : {"", "..", "../step5", "step5/../..", "/tmp"}) {
    name = Name();
    name.set_checkpoint(checkpoint);
    EXPECT_EQ(CodeOf(Begin(name)), absl::StatusCode::kInvalidArgument) << checkpoint;
  }
  EXPECT_EQ(CodeOf(Begin(Name(v1::TaskId::COORDINATOR))), absl::StatusCode::kInvalidArgument);
  // The manifest is of another task; of another cut; the server's own.
  EXPECT_EQ(CodeOf(Begin(Name(v1::TaskId::WORKER, 0))), absl::StatusCode::kInvalidArgument);
  name = Name();
  name.set_cut_id(9);
  EXPECT_EQ(CodeOf(Begin(name)), absl::StatusCode::kInvalidArgument);
  WriteOwn(Task(v1::TaskId::SERVER, 1));
  EXPECT_EQ(CodeOf(Begin(Name(v1::TaskId::SERVER, 1))), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(CodeOf(Piece(Name(), 0, std::string(PartStore::kMaxBytes + 1, 'x'))), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(store_->Read(Read(0, PartStore::kMaxBytes + 1)).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_FALSE(FileExists(JoinPath(base_, "there")));
}

TEST_F(PartStoreTest, BeforeTheJobOneIsToAskAgain) {
  WriteOwn(Task(v1::TaskId::SERVER, 0));
  MakeStore(64);
  EXPECT_EQ(CodeOf(Begin(Name())), absl::StatusCode::kUnavailable);
  EXPECT_EQ(store_->Read(Read(0, 0)).status().code(), absl::StatusCode::kUnavailable);
}

TEST_F(PartStoreTest, TakesABoundedNumberAtATime) {
  MakeStore(2);
  store_->SetJob(kJob);
  for (uint32_t worker = 0; worker < 2; ++worker) {
    WriteOwn(Task(v1::TaskId::WORKER, worker));
    ASSERT_TRUE(store_->Write(Begin(Name(v1::TaskId::WORKER, worker))).ok());
    clock_.Advance(absl::Seconds(1));
  }
  const std::string data = WriteOwn(Task(v1::TaskId::WORKER, 2));
  EXPECT_EQ(CodeOf(Begin(Name(v1::TaskId::WORKER, 2))), absl::StatusCode::kResourceExhausted);
  // The first one has been idle for long enough.
  clock_.Advance(absl::Minutes(2) - absl::Seconds(1));
  ASSERT_TRUE(store_->Write(Begin(Name(v1::TaskId::WORKER, 2))).ok());
  EXPECT_EQ(CodeOf(Piece(Name(v1::TaskId::WORKER, 0), 0, data)), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(store_->Write(Piece(Name(v1::TaskId::WORKER, 2), 0, data))->complete());
}

}  // namespace
}  // namespace rubato
