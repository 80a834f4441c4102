// A stand-in for the coordinator, the servers and the workers of a job, for tests of the launcher. With --port_file it
// is the coordinator. As a worker it counts two GPUs. How it behaves is the job's name in its config; see the tests.

#include <grpcpp/grpcpp.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <iostream>
#include <map>
#include <string>

#include "common/mutex.h"
#include "common/storage/file.h"
#include "google/protobuf/text_format.h"
#include "proto/coordinator.grpc.pb.h"

namespace rubato {
namespace {

class FakeCoordinator : public v1::Coordinator::Service {
 public:
  FakeCoordinator(std::string behaviour, std::string run_directory, bool resumes)
      : behaviour_(std::move(behaviour)), run_directory_(std::move(run_directory)), resumes_(resumes) {}

  grpc::Status GetStatus(grpc::ServerContext*, const v1::GetStatusRequest*, v1::JobStatus* reply) override {
    if (behaviour_ == "silent") return grpc::Status(grpc::StatusCode::UNAVAILABLE, "busy");
    MutexLock lock(mu_);
    ++polls_;
    if (behaviour_ == "coordinator-dies" && !resumes_ && polls_ == 3) raise(SIGKILL);
    bool failed = behaviour_ == "fails" || behaviour_ == "server-dies";
    reply->set_phase(failed ? v1::JobStatus::FAILED : v1::JobStatus::TRAINING);
    if (behaviour_ == "worker-cannot-begin") reply->set_phase(v1::JobStatus::STARTING);
    if (failed) reply->set_error("server 1: no heartbeat for 5.0 s; its parameters are lost");
    reply->set_step(polls_);
    int last = behaviour_ == "worker-dies" ? 40 : 10;
    bool ends = failed || behaviour_ == "ends" || behaviour_ == "worker-dies" || behaviour_ == "coordinator-dies" ||
                (behaviour_ == "evaluator-dies" && EvaluatorStarts() == 4);
    if (ends && polls_ >= last) End(failed ? 1 : 0);
    return grpc::Status::OK;
  }

  grpc::Status StopJob(grpc::ServerContext*, const v1::StopJobRequest* request, v1::StopJobReply*) override {
    std::cerr << "stop: " << request->reason() << std::endl;
    if (behaviour_ == "stubborn") return grpc::Status::OK;
    MutexLock lock(mu_);
    End(1);
    return grpc::Status::OK;
  }

  int WaitForEnd() {
    MutexLock lock(mu_);
    while (!ended_) changed_.Wait(mu_);
    return exit_code_;
  }

 private:
  // How often an evaluator has been started: each writes a line.
  int64_t EvaluatorStarts() const {
    const std::string log = ReadFile(JoinPath(run_directory_, "logs/evaluator-0.log")).value_or("");
    return std::count(log.begin(), log.end(), '\n');
  }

  void End(int code) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    ended_ = true;
    exit_code_ = code;
    changed_.NotifyAll();
  }

  const std::string behaviour_;
  const std::string run_directory_;
  const bool resumes_;
  Mutex mu_;
  CondVar changed_;
  int polls_ ABSL_GUARDED_BY(mu_) = 0;
  bool ended_ ABSL_GUARDED_BY(mu_) = false;
  int exit_code_ ABSL_GUARDED_BY(mu_) = 0;
};

int WaitForASignal() {
  while (true) pause();
}

int RunCoordinator(const std::string& behaviour, const std::string& run_directory,
                   std::map<std::string, std::string> flags, bool resumes) {
  if (behaviour == "config-refused") {
    std::cerr << "name: value \"\"; allowed: letters" << std::endl;
    return 2;
  }
  if (behaviour == "mute") return WaitForASignal();
  if (resumes) std::cerr << "goes on at " << flags["--listen"] << std::endl;
  FakeCoordinator coordinator(behaviour, run_directory, resumes);
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort(flags["--listen"], grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(&coordinator);
  std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (!WriteFileAtomically(flags["--port_file"], "127.0.0.1:" + std::to_string(port) + "\n").ok()) return 3;
  int code = coordinator.WaitForEnd();
  server->Shutdown(std::chrono::system_clock::now() + std::chrono::seconds(1));
  return code;
}

int RunTask(const std::string& behaviour, const std::string& role, const std::string& index,
            const std::string& changed) {
  std::cerr << role << " started" << (changed.empty() ? "" : " with " + changed) << std::endl;
  if ((behaviour == "worker-dies" || behaviour == "worker-cannot-begin") && role == "worker") {
    std::cerr << "the disk is full" << std::endl;
    return 7;
  }
  if (behaviour == "evaluator-refuses" && role == "evaluator") {
    std::cerr << "labels: truncated" << std::endl;
    return 2;
  }
  if (behaviour == "server-dies" && role == "server" && index == "1") raise(SIGKILL);
  if (behaviour == "evaluator-dies" && role == "evaluator") raise(SIGKILL);
  return WaitForASignal();
}

int Main(int argc, char** argv) {
  if (argc > 1 && std::string(argv[1]) == "--count_gpus") {
    std::cout << 2 << std::endl;
    return 0;
  }
  std::map<std::string, std::string> flags;
  for (int i = 1; i + 1 < argc; i += 2) flags[argv[i]] = argv[i + 1];
  absl::StatusOr<std::string> text = ReadFile(flags["--config"]);
  v1::JobConfig config;
  if (!text.ok() || !google::protobuf::TextFormat::ParseFromString(*text, &config)) return 2;
  if (config.name() == "stubborn") signal(SIGTERM, SIG_IGN);
  if (flags.count("--port_file") > 0) {
    return RunCoordinator(config.name(), config.run_directory(), flags,
                          std::string(argv[argc - 1]).starts_with("--resume"));
  }
  const std::string role = flags.count("--role") > 0 ? flags["--role"] : "server";
  return RunTask(config.name(), role, flags["--task_index"], flags["--set"]);
}

}  // namespace
}  // namespace rubato

int main(int argc, char** argv) { return rubato::Main(argc, argv); }
