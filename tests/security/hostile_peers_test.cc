// Peers who mean ill to a job that trains, with and without a member's certificate: the job loses no step, what they
// take of memory has a bound, and the log names each of them a few times.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <map>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/process_memory.h"
#include "coordinator/testing/small_job.h"
#include "tests/security/certified_job.h"
#include "tests/security/certified_run.h"
#include "tests/security/hostile_peer.h"

namespace rubato {
namespace {

using ::testing::HasSubstr;

constexpr char kExchange[] = "/rubato.v1.ParameterServer/Exchange";
constexpr char kSession[] = "/rubato.v1.Coordinator/Session";
// Of what a job's server lets a task have.
constexpr size_t kStreamsOfATask = 18;
constexpr size_t kSessionsOfATask = 8;
// Of the whole process, which is the job and all who mean it ill.
constexpr int64_t kMostGrowthMib = 1000;

class HostilePeersTest : public testing::Test {
 protected:
  HostilePeersTest() {
    RaiseDescriptorLimit();
    run_ = std::make_unique<CertifiedRun>(&job_);
    run_->AwaitSteps(2);
    begun_ = run_->Status();
    server_port_ = run_->server_port();
  }

  // Worker 2's certificate is a good one, of a worker that does not take part.
  HostilePeer AtServer(Party party = Party::kWorker, uint32_t index = 2) {
    const std::shared_ptr<const TaskSecurity> security = job_.As(party, index);
    return HostilePeer(server_port_, Party::kServer, security.get());
  }
  HostilePeer AtCoordinator() {
    const std::shared_ptr<const TaskSecurity> security = job_.As(Party::kWorker, 2);
    return HostilePeer(run_->coordinator_port(), Party::kCoordinator, security.get());
  }
  v1::TaskId WorkerZero() const {
    for (const v1::TaskStatus& task : begun_.tasks()) {
      if (task.task().role() == v1::TaskId::WORKER && task.task().index() == 0) return task.task();
    }
    ADD_FAILURE() << begun_.DebugString();
    return {};
  }
  static v1::ExchangeRequest SnapshotFor(const v1::TaskId& task, uint64_t id, uint32_t partition = 0) {
    v1::ExchangeRequest request;
    request.set_request_id(id);
    *request.mutable_task() = task;
    request.set_job_fingerprint(CertifiedRun::kFingerprint);
    request.set_partition(partition);
    request.mutable_snapshot()->set_at_step(-1);
    request.mutable_snapshot()->add_chunks(0);
    return request;
  }
  // Where chunk 0 is.
  uint32_t Partition() {
    HostilePeer peer = AtServer();
    for (uint32_t partition = 0; partition < 16; ++partition) {
      const auto answers =
          peer.Ask([&](uint64_t id) { return SnapshotFor(coordinator::WorkerTask(2, 9), id, partition); }, 1);
      if (answers.count("OK: ") > 0) return partition;
    }
    ADD_FAILURE() << "chunk 0 is nowhere";
    return 0;
  }

  void RegistersAsTheServer();
  void SpeaksOnAnothersStream();
  void ReadsWhatItMayNot();
  void SendsLargeMessages();
  void OpensTenThousandStreams();
  void DoesNotRead();
  void AsksWithoutWaiting();
  void HasNoCredential();

  const CertifiedJob job_{"job", "hunted"};
  std::unique_ptr<CertifiedRun> run_;
  v1::JobStatus begun_;
  int server_port_ = 0;
};

void HostilePeersTest::RegistersAsTheServer() {
  HostilePeer peer = AtCoordinator();
  for (uint64_t incarnation = 1; incarnation <= 20; ++incarnation) {
    const grpc::Status status = peer.Register(coordinator::ServerTask(0, incarnation));
    EXPECT_EQ(status.error_code(), grpc::StatusCode::PERMISSION_DENIED);
    EXPECT_EQ(status.error_message(),
              "the message says that it is of server 0, and came with the certificate of worker 2");
  }
}

void HostilePeersTest::SpeaksOnAnothersStream() {
  // A push of worker 0's next step, again and again.
  const auto push = [this](uint64_t id) {
    v1::ExchangeRequest request;
    request.set_request_id(id);
    *request.mutable_task() = WorkerZero();
    request.set_job_fingerprint(CertifiedRun::kFingerprint);
    request.set_generation(begun_.plan().generation());
    request.mutable_push_pull()->set_step(begun_.step() + static_cast<int64_t>(id));
    request.mutable_push_pull()->set_examples(8);
    request.mutable_push_pull()->add_chunks()->set_length(1);
    request.set_payload(std::string(sizeof(float), '\x7f'));
    return request;
  };
  const std::map<std::string, int> answers = AtServer().Ask(push, 300);
  EXPECT_EQ(answers,
            (std::map<std::string, int>{
                {"REFUSED: the message says that it is of worker 0, and came with the certificate of worker 2", 300}}));
}

void HostilePeersTest::ReadsWhatItMayNot() {
  const auto as_evaluator = [](uint64_t id) { return SnapshotFor(coordinator::EvaluatorTask(9), id); };
  EXPECT_EQ(
      AtServer().Ask(as_evaluator, 20),
      (std::map<std::string, int>{
          {"REFUSED: the message says that it is of evaluator 0, and came with the certificate of worker 2", 20}}));
  // A server has no use for others' weights.
  EXPECT_EQ(AtServer(Party::kServer, 1).Ask(as_evaluator, 1),
            (std::map<std::string, int>{{absl::StrCat("7: server 1 may not call ", kExchange), 1}}));
  const auto of_another_job = [](uint64_t id) {
    v1::ExchangeRequest request = SnapshotFor(coordinator::WorkerTask(2, 9), id);
    request.set_job_fingerprint(CertifiedRun::kFingerprint + 1);
    return request;
  };
  const std::map<std::string, int> answers = AtServer().Ask(of_another_job, 1);
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_THAT(answers.begin()->first, HasSubstr("REFUSED: job_fingerprint"));
}

void HostilePeersTest::SendsLargeMessages() {
  for (int i = 0; i < 3; ++i) {
    for (const grpc::Status& status :
         {AtServer().SendLarge(kExchange, 257), AtCoordinator().SendLarge(kSession, 257)}) {
      EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED) << status.error_message();
      EXPECT_THAT(status.error_message(), HasSubstr("larger than max (269484032 vs. "));
    }
  }
}

void HostilePeersTest::OpensTenThousandStreams() {
  const auto refused_by_name = [](const HostilePeer::Streams& streams, size_t most, const std::string& text) {
    EXPECT_LE(streams.open, most);
    int refused = 0;
    for (const auto& [how, count] : streams.refused) {
      EXPECT_EQ(how, absl::StrCat("8: worker 2 has ", most, " ", text, " open already; no more at the same time"));
      refused += count;
    }
    return refused;
  };
  const int refused =
      refused_by_name(AtServer().OpenStreams(kExchange, 10000, kStreamsOfATask), kStreamsOfATask, "streams");
  EXPECT_GE(refused, 10000 - static_cast<int>(kStreamsOfATask));
  const int sessions =
      refused_by_name(AtCoordinator().OpenStreams(kSession, 1000, kSessionsOfATask), kSessionsOfATask, "sessions");
  EXPECT_GE(sessions, 1000 - static_cast<int>(kSessionsOfATask));
  std::cout << "refused: " << refused << " of 10000 streams, " << sessions << " of 1000 sessions\n";
}

void HostilePeersTest::DoesNotRead() {
  // Of 256 KB each, and fewer than may be unanswered.
  const uint32_t partition = Partition();
  const auto snapshot = [&](uint64_t id) { return SnapshotFor(coordinator::WorkerTask(2, 9), id, partition); };
  const grpc::Status status = AtServer().AskWithoutReading(snapshot, 800);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED) << status.error_message();
}

void HostilePeersTest::AsksWithoutWaiting() {
  const uint32_t partition = Partition();
  // Of a step that is not there for long.
  const auto later = [&](uint64_t id) {
    v1::ExchangeRequest request = SnapshotFor(coordinator::WorkerTask(2, 9), id, partition);
    request.mutable_snapshot()->set_at_step(int64_t{1} << 40);
    return request;
  };
  const grpc::Status status = AtServer().AskWithoutReading(later, 50000);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED) << status.error_message();
  EXPECT_THAT(status.error_message(), HasSubstr(" requests unanswered; no more at the same time"));
}

void HostilePeersTest::HasNoCredential() {
  const CertifiedJob other("other", "hunted");
  const std::shared_ptr<const TaskSecurity> stranger = other.As(Party::kWorker, 0);
  for (const TaskSecurity* security : {static_cast<const TaskSecurity*>(nullptr), stranger.get()}) {
    for (int i = 0; i < 5; ++i) {
      EXPECT_EQ(CallMethod(server_port_, Party::kServer, security, kExchange).code(), absl::StatusCode::kUnavailable);
      EXPECT_EQ(CallMethod(run_->coordinator_port(), Party::kCoordinator, security, kSession).code(),
                absl::StatusCode::kUnavailable);
    }
  }
}

// Of who was refused, by what.
std::vector<std::string> Refusals(const std::string& log) {
  std::vector<std::string> lines;
  for (const absl::string_view line : absl::StrSplit(log, '\n')) {
    if (absl::StrContains(line, "] refused: ")) lines.emplace_back(line.substr(line.find("refused: ")));
  }
  return lines;
}

void ExpectNamed(const std::vector<std::string>& refusals, const std::string& text, int most) {
  const auto named = std::count_if(refusals.begin(), refusals.end(),
                                   [&](const std::string& line) { return absl::StrContains(line, text); });
  EXPECT_GE(named, 1) << text;
  EXPECT_LE(named, most) << text;
}

TEST_F(HostilePeersTest, AJobGoesOnBetweenThem) {
  const int64_t before = ResidentBytes();
  testing::internal::CaptureStderr();
  RegistersAsTheServer();
  SpeaksOnAnothersStream();
  ReadsWhatItMayNot();
  SendsLargeMessages();
  OpensTenThousandStreams();
  DoesNotRead();
  AsksWithoutWaiting();
  HasNoCredential();
  // The last, as nobody else of this machine gets a connection for a while then.
  const std::vector<FileDescriptor> at_server = ConnectSilently(server_port_, 1000);
  const std::vector<FileDescriptor> at_coordinator = ConnectSilently(run_->coordinator_port(), 200);
  const int64_t step = run_->AwaitSteps(20);
  EXPECT_EQ(CountEnded(at_server), 1000);
  EXPECT_EQ(CountEnded(at_coordinator), 200);
  const int64_t growth = (ResidentBytes() - before) >> 20;
  run_->ExpectUnharmed(begun_);
  run_->StopAndAudit();
  const std::string log = testing::internal::GetCapturedStderr();
  std::cerr << log;
  std::cout << "steps " << begun_.step() << " to " << step << "; resident memory grew by " << growth << " MiB\n";
  EXPECT_LE(growth, kMostGrowthMib);
  const std::vector<std::string> refusals = Refusals(log);
  ExpectNamed(refusals, "is of server 0, and came with the certificate of worker 2 (from worker 2)", 1);
  ExpectNamed(refusals, "is of worker 0, and came with the certificate of worker 2 (from worker 2)", 1);
  ExpectNamed(refusals, "none came, or one of more than", 1);
  ExpectNamed(refusals, "none came, or too long a one", 1);
  ExpectNamed(refusals, "worker 2 has 18 streams open already", 1);
  ExpectNamed(refusals, "worker 2 has 8 sessions open already", 1);
  ExpectNamed(refusals, "does not read its answers", 1);
  ExpectNamed(refusals, "requests unanswered", 1);
  ExpectNamed(refusals, "127.0.0.1 has made", 2);
  EXPECT_LE(refusals.size(), 20u);
}

// A coordinator, or who says that he is one, that tells a worker what is not so.
class LyingCoordinator final : public v1::Coordinator::Service {
 public:
  LyingCoordinator(const TaskSecurity* security, v1::JobDescription job) : job_(std::move(job)) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", ServerCredentialsOf(security), &port_);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }
  ~LyingCoordinator() override { server_->Shutdown(std::chrono::system_clock::now()); }

  int port() const { return port_; }

 private:
  grpc::Status Session(grpc::ServerContext*,
                       grpc::ServerReaderWriter<v1::Directive, v1::TaskMessage>* stream) override {
    v1::TaskMessage message;
    while (stream->Read(&message)) {
      if (!message.has_register_()) continue;
      v1::Directive directive;
      directive.mutable_registered()->set_lease_seconds(10);
      stream->Write(directive);
      *directive.mutable_job() = job_;
      stream->Write(directive);
    }
    return grpc::Status::OK;
  }

  const v1::JobDescription job_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

TEST(ForgedPlacementTest, AWorkerDoesNotBelieveThemAndCallsNobody) {
  const CertifiedJob job("job", "hunted");
  v1::JobDescription description;
  description.set_fingerprint(CertifiedRun::kFingerprint);
  v1::ServerInfo* server = description.add_servers();
  server->mutable_task()->set_role(v1::TaskId::SERVER);
  server->mutable_task()->set_incarnation(5);
  server->set_address("127.0.0.1:1");
  // Far behind the end of the tensor.
  v1::ChunkPlacement* chunk = description.add_chunks();
  chunk->set_offset(int64_t{1} << 40);
  chunk->set_length(64);
  const std::shared_ptr<const TaskSecurity> coordinator = job.As(Party::kCoordinator);
  const LyingCoordinator liar(coordinator.get(), description);
  const absl::Status status = RunCertifiedWorker(job, 0, absl::StrCat("127.0.0.1:", liar.port()));
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("job.chunks[0].offset: value 1099511627776")) << status;
}

TEST(ForgedPlacementTest, AWorkerDoesNotHearWhoeverIsNoCoordinator) {
  const CertifiedJob job("job", "hunted");
  const std::shared_ptr<const TaskSecurity> worker = job.As(Party::kWorker, 2);
  const LyingCoordinator liar(worker.get(), {});
  EXPECT_EQ(CallMethod(liar.port(), Party::kCoordinator, job.As(Party::kWorker, 0).get(), kSession).code(),
            absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace rubato
