// The runner with streams of this process: its threads and locks without gRPC between them.
#include "coordinator/job_runner.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/task.h"
#include "coordinator/testing/small_job.h"

namespace rubato::coordinator {
namespace {

// A server's or worker's stream that answers from the runner's thread.
class FakeStream final : public TaskStream, public std::enable_shared_from_this<FakeStream> {
 public:
  FakeStream(JobRunner* runner, v1::TaskId task) : runner_(runner), task_(std::move(task)) {}

  void Register() {
    v1::TaskMessage message;
    *message.mutable_register_() = RegistrationOf(task_);
    Say(std::move(message));
  }
  void Say(v1::TaskMessage message) {
    *message.mutable_task() = task_;
    runner_->OnMessage(shared_from_this(), std::move(message), "ipv4:10.0.0.9:555");
  }
  void Send(const v1::Directive& directive) override {
    if (task_.role() == v1::TaskId::SERVER) {
      if (std::optional<v1::TaskMessage> answer = ServerAnswer(directive, /*started=*/0)) Say(*std::move(answer));
    }
    MutexLock lock(mu_);
    received_.push_back(directive);
    changed_.NotifyAll();
  }
  void Handled() override {
    MutexLock lock(mu_);
    ++handled_;
  }
  void Close(const absl::Status& why) override {
    MutexLock lock(mu_);
    closed_ = why;
    changed_.NotifyAll();
  }
  bool Has(v1::Directive::BodyCase body) {
    MutexLock lock(mu_);
    return HasLocked(body);
  }
  bool WaitFor(v1::Directive::BodyCase body) {
    MutexLock lock(mu_);
    for (int attempt = 0; attempt < 100 && !HasLocked(body); ++attempt) {
      changed_.WaitFor(mu_, absl::Milliseconds(100));
    }
    return HasLocked(body);
  }
  absl::Status WaitClosed() {
    MutexLock lock(mu_);
    for (int attempt = 0; attempt < 100 && closed_.ok(); ++attempt) changed_.WaitFor(mu_, absl::Milliseconds(100));
    return closed_;
  }

 private:
  bool HasLocked(v1::Directive::BodyCase body) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    for (const v1::Directive& directive : received_) {
      if (directive.body_case() == body) return true;
    }
    return false;
  }

  JobRunner* const runner_;
  const v1::TaskId task_;
  Mutex mu_;
  CondVar changed_;
  std::vector<v1::Directive> received_ ABSL_GUARDED_BY(mu_);
  int handled_ ABSL_GUARDED_BY(mu_) = 0;
  absl::Status closed_ ABSL_GUARDED_BY(mu_);
};

// The answer of a call, waited for by the test's thread.
template <typename T>
class Answer {
 public:
  void Set(T value) {
    MutexLock lock(mu_);
    value_ = std::move(value);
    changed_.NotifyAll();
  }
  std::optional<T> Wait() {
    MutexLock lock(mu_);
    for (int attempt = 0; attempt < 100 && !value_; ++attempt) changed_.WaitFor(mu_, absl::Milliseconds(100));
    return value_;
  }

 private:
  Mutex mu_;
  CondVar changed_;
  std::optional<T> value_ ABSL_GUARDED_BY(mu_);
};

// A status without the parts that its copies share: Abseil counts who holds them out of the thread sanitizer's sight.
struct Outcome {
  absl::StatusCode code;
  std::string message;
};
Outcome OutcomeOf(const absl::StatusOr<v1::SwitchModeReply>& reply) {
  return {reply.status().code(), std::string(reply.status().message())};
}

class JobRunnerTest : public testing::Test {
 protected:
  JobRunnerTest() {
    directory_ =
        absl::StrCat(testing::TempDir(), "/runner-", testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::remove_all(directory_);
    JobRunner::Options options;
    options.config = SmallJob();
    options.config.set_run_directory(directory_);
    options.config_fingerprint = kConfigFingerprint;
    options.job_fingerprint = 7;
    options.clock = &clock_;
    options.log = &log_;
    options.tick = absl::Milliseconds(5);
    options.on_line = [this](const v1::RunRecordLine& line) {
      MutexLock lock(lines_mu_);
      lines_.push_back(line);
    };
    auto runner = JobRunner::Create(std::move(options));
    EXPECT_TRUE(runner.ok()) << runner.status();
    runner_ = *std::move(runner);
  }
  std::shared_ptr<FakeStream> Add(const v1::TaskId& task) {
    return streams_.emplace_back(std::make_shared<FakeStream>(runner_.get(), task));
  }
  // Each task registers from a thread of its own.
  void StartJob() {
    std::vector<std::shared_ptr<FakeStream>> tasks = {Add(ServerTask(0)), Add(ServerTask(1)), Add(WorkerTask(0)),
                                                      Add(WorkerTask(1))};
    std::vector<std::thread> threads;
    for (const auto& task : tasks) threads.emplace_back([task] { task->Register(); });
    for (std::thread& thread : threads) thread.join();
    ASSERT_TRUE(tasks[2]->WaitFor(v1::Directive::kJob));
  }
  Outcome Switch(absl::Duration timeout) {
    auto answer = std::make_shared<Answer<Outcome>>();
    v1::SwitchModeRequest request;
    request.set_mode(v1::ASYNC);
    runner_->SwitchMode(request, "operator at 10.0.0.8", timeout,
                        [answer](absl::StatusOr<v1::SwitchModeReply> reply) { answer->Set(OutcomeOf(reply)); });
    return answer->Wait().value_or(Outcome{absl::StatusCode::kUnknown, "no answer"});
  }

  // The requests in the run record up to now.
  std::vector<std::string> Requests() {
    std::vector<std::string> requests;
    MutexLock lock(lines_mu_);
    for (const v1::RunRecordLine& line : lines_) {
      if (!line.has_request()) continue;
      requests.push_back(absl::StrCat(line.request().by(), ": ", line.request().request(),
                                      line.request().refused().empty() ? "" : ", refused"));
    }
    return requests;
  }

  Mutex lines_mu_;
  std::vector<v1::RunRecordLine> lines_ ABSL_GUARDED_BY(lines_mu_);
  std::string directory_;
  RealClock clock_;
  Logger log_{"coordinator", &clock_};
  std::vector<std::shared_ptr<FakeStream>> streams_;
  std::unique_ptr<JobRunner> runner_;
};

TEST_F(JobRunnerTest, StartsAJobWhoseTasksComeFromManyThreads) {
  StartJob();
  auto status = std::make_shared<Answer<v1::JobStatus>>();
  runner_->GetStatus([status](v1::JobStatus job) { status->Set(std::move(job)); });
  EXPECT_EQ(status->Wait()->phase(), v1::JobStatus::TRAINING);
}

TEST_F(JobRunnerTest, ASwitchThatWaitsEndsAtItsDeadlineAndSaysForWhom) {
  StartJob();
  Outcome outcome = Switch(absl::Milliseconds(50));
  EXPECT_EQ(outcome.code, absl::StatusCode::kDeadlineExceeded);
  EXPECT_TRUE(absl::StrContains(outcome.message, "worker 0, worker 1 to enter plan 1")) << outcome.message;
}

TEST_F(JobRunnerTest, TheRecordSaysWhoHasAskedForWhat) {
  StartJob();
  Switch(absl::Milliseconds(50));
  auto answer = std::make_shared<Answer<bool>>();
  v1::TraceJobRequest trace;
  trace.set_seconds(601);
  runner_->Trace(trace, "operator at 10.0.0.7",
                 [answer](const absl::StatusOr<v1::TraceJobReply>& reply) { answer->Set(reply.ok()); });
  EXPECT_EQ(answer->Wait(), false);
  EXPECT_EQ(Requests(), (std::vector<std::string>{"operator at 10.0.0.8: switch to async",
                                                  "operator at 10.0.0.7: trace 601 s, refused"}));
}

TEST_F(JobRunnerTest, StoppingEndsTheJobWithItsReason) {
  StartJob();
  runner_->Stop("enough", "operator at 10.0.0.8", [] {});
  // The second time it does not wait for a checkpoint.
  runner_->Stop("enough", "operator at 10.0.0.8", [] {});
  EXPECT_TRUE(streams_[0]->WaitFor(v1::Directive::kStop));
  for (const auto& stream : streams_) runner_->OnClosed(stream);
  std::optional<absl::Status> ended = runner_->Wait(absl::Seconds(10));
  ASSERT_TRUE(ended.has_value());
  EXPECT_EQ(ended->message(), "stopped by the operator at 10.0.0.8: enough");
}

TEST_F(JobRunnerTest, GivesWayToACoordinatorThatTookItsJournalOver) {
  StartJob();
  const std::string journal = directory_ + "/journal";
  std::filesystem::copy_file(journal, journal + ".other");
  std::filesystem::rename(journal + ".other", journal);
  const auto bytes = std::filesystem::file_size(journal);
  runner_->Stop("enough", "operator at 10.0.0.8", [] {});
  std::optional<absl::Status> ended = runner_->Wait(absl::Seconds(10));
  ASSERT_TRUE(ended.has_value());
  EXPECT_EQ(ended->code(), absl::StatusCode::kAborted);
  EXPECT_TRUE(absl::StrContains(ended->message(), "/journal: another coordinator")) << *ended;
  EXPECT_EQ(std::filesystem::file_size(journal), bytes);
  for (const auto& stream : streams_) EXPECT_FALSE(stream->Has(v1::Directive::kStop));
}

TEST_F(JobRunnerTest, AStreamThatSpeaksForAnotherTaskIsClosed) {
  auto stream = Add(WorkerTask(0));
  stream->Say(v1::TaskMessage());
  EXPECT_EQ(stream->WaitClosed().code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(JobRunnerTest, ASwitchThatWaitsIsCancelledWhenTheRunnerGoes) {
  StartJob();
  auto answer = std::make_shared<Answer<Outcome>>();
  v1::SwitchModeRequest request;
  request.set_mode(v1::ASYNC);
  runner_->SwitchMode(request, "operator at 10.0.0.8", absl::Minutes(1),
                      [answer](absl::StatusOr<v1::SwitchModeReply> reply) { answer->Set(OutcomeOf(reply)); });
  runner_.reset();
  EXPECT_EQ(answer->Wait()->code, absl::StatusCode::kCancelled);
}

}  // namespace
}  // namespace rubato::coordinator
