// How fast PushPull with SGD applied is, against what sockets, gRPC and memory can do on the same machine. Server and
// client of each subject are processes of their own; all subjects of a size are interleaved in many
// short rounds each, so that a busy machine slows all of them alike.
//
//   push_pull_bench --sizes=65536,1048576 --in_flight=1,8 --only=rubato,bytebuffer_stream
//   push_pull_bench --sizes=1048576,4194304 --tls
#include <stdlib.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <iostream>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "bench/bench_output.h"
#include "bench/push_pull/ratios.h"
#include "bench/push_pull/roles.h"
#include "bench/push_pull/subject.h"
#include "common/security/credentials.h"
#include "common/status.h"
#include "common/transport/process_tuning.h"

namespace rubato::bench {
namespace {

struct Flags {
  std::vector<int64_t> sizes = {4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20};
  std::vector<int> in_flight = {1, 8};
  double seconds = 0.1;
  int rounds = 21;
  std::vector<std::string> only;
  bool tls = false;
  // How this program starts itself for a part of a Pair.
  std::string role;
  std::string address;
  // But for size and in_flight.
  Setup setup;
};

// A folder with credentials of a server and a worker, as long as it lives.
class CredentialsFolder {
 public:
  ~CredentialsFolder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }

  absl::Status Write() {
    char path[] = "/tmp/push-pull-credentials-XXXXXX";
    if (mkdtemp(path) == nullptr) return absl::ErrnoToStatus(errno, "/tmp: no folder can be made");
    path_ = path;
    return WriteCredentials(path_, kJobName,
                            {{.job = kJobName, .party = Party::kServer}, {.job = kJobName, .party = Party::kWorker}},
                            {.begin = absl::Now(), .lifetime = absl::Hours(24)});
  }

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

struct Case {
  Measured measured;
  std::unique_ptr<Pair> pair = nullptr;
  std::vector<double> round_trips_per_s = {};
};

absl::StatusOr<Subject> FindSubject(const std::string& name) {
  std::string known;
  for (const Subject& subject : Subjects()) {
    if (subject.name == name) return subject;
    absl::StrAppend(&known, known.empty() ? "" : ", ", subject.name);
  }
  return absl::InvalidArgumentError(absl::StrCat("--only: \"", name, "\" is not one of ", known));
}

// What makes this program one side of the case.
std::vector<std::string> PartFlags(const Flags& flags, const Measured& measured) {
  std::vector<std::string> parts = {absl::StrCat("--only=", measured.subject),
                                    absl::StrCat("--sizes=", measured.size),
                                    absl::StrCat("--in_flight=", measured.in_flight),
                                    absl::StrCat("--cycle_bytes=", flags.setup.cycle_bytes),
                                    absl::StrCat("--congestion=", flags.setup.congestion),
                                    absl::StrCat("--socket_buffer_bytes=", flags.setup.socket_buffer_bytes),
                                    absl::StrCat("--unix_socket=", flags.setup.unix_socket ? "true" : "false")};
  const std::string& credentials = flags.setup.credentials;
  if (!credentials.empty()) parts.push_back(absl::StrCat("--credentials=", credentials));
  const std::string& arguments = flags.setup.channel_arguments;
  if (!arguments.empty()) parts.push_back(absl::StrCat("--channel_arguments=", arguments));
  return parts;
}

absl::Status PlayRole(const Flags& flags) {
  RUBATO_ASSIGN_OR_RETURN(const Subject subject, FindSubject(flags.only.at(0)));
  Setup setup = flags.setup;
  setup.size = flags.sizes.at(0);
  setup.in_flight = flags.in_flight.at(0);
  return flags.role == "server" ? PlayServer(subject, setup) : PlayClient(subject, setup, flags.address);
}

absl::Status RunRounds(const Flags& flags, std::vector<Case>* cases) {
  for (int round = -1; round < flags.rounds; ++round) {
    for (Case& one : *cases) {
      absl::StatusOr<Count> count = one.pair->Run(absl::Seconds(flags.seconds));
      if (!count.ok()) return Annotate(count.status(), one.measured.subject);
      if (round < 0) continue;  // Its caches, buffers and windows are still growing.
      one.round_trips_per_s.push_back(static_cast<double>(count->round_trips) / absl::ToDoubleSeconds(count->elapsed));
    }
  }
  return absl::OkStatus();
}

// Everything of one size, interleaved.
absl::Status MeasureSize(const Flags& flags, const std::vector<Subject>& subjects, int64_t size,
                         std::vector<Measured>* measured) {
  std::vector<Case> cases;
  for (const int in_flight : flags.in_flight) {
    for (const Subject& subject : subjects) {
      if (in_flight == 1 && !subject.one_in_flight) continue;
      cases.push_back({.measured = {.subject = subject.name, .size = size, .in_flight = in_flight}});
      auto pair = Pair::Start(PartFlags(flags, cases.back().measured));
      if (!pair.ok()) return Annotate(pair.status(), subject.name);
      cases.back().pair = *std::move(pair);
    }
  }
  RUBATO_RETURN_IF_ERROR(RunRounds(flags, &cases));
  for (Case& one : cases) {
    RUBATO_RETURN_IF_ERROR(Annotate(one.pair->Verify(), one.measured.subject));
    one.measured.round_trips_per_s = Median(one.round_trips_per_s);
    one.measured.gb_per_s = 2e-9 * static_cast<double>(size) * one.measured.round_trips_per_s;
    measured->push_back(one.measured);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Subject>> Chosen(const Flags& flags) {
  std::vector<Subject> subjects;
  for (const std::string& name : flags.only) {
    RUBATO_ASSIGN_OR_RETURN(subjects.emplace_back(), FindSubject(name));
    if (flags.tls && !subjects.back().tls) {
      return absl::InvalidArgumentError(
          absl::StrCat("--tls: \"", name, "\" of --only does not speak it; without --only those that do are measured"));
    }
  }
  if (!flags.only.empty()) return subjects;
  for (const Subject& subject : Subjects()) {
    if (subject.tls || !flags.tls) subjects.push_back(subject);
  }
  return subjects;
}

absl::Status Measure(Flags flags) {
  RUBATO_ASSIGN_OR_RETURN(const std::vector<Subject> subjects, Chosen(flags));
  CredentialsFolder credentials;
  if (flags.tls) {
    RUBATO_RETURN_IF_ERROR(credentials.Write());
    flags.setup.credentials = credentials.path();
  }
  std::vector<Measured> measured;
  for (const int64_t size : flags.sizes) {
    RUBATO_RETURN_IF_ERROR(Annotate(MeasureSize(flags, subjects, size, &measured), SizeName(size)));
  }
  std::vector<BenchCase> cases;
  for (const Measured& one : measured) {
    cases.push_back(
        {absl::StrCat(one.subject, " ", SizeName(one.size), " x", one.in_flight),
         {{"gb_per_s", one.gb_per_s}, {"round_trips_per_s", one.round_trips_per_s}, {"round_trip_us", one.rtt_us()}}});
  }
  PrintCases(cases);
  PrintCases(Ratios(measured));
  return absl::OkStatus();
}

void AddFlags(CLI::App* app, Flags* flags) {
  app->add_option("--sizes", flags->sizes, "Bytes of a message, powers of 4")
      ->delimiter(',')
      ->check(CLI::Range(4096, 64 << 20));
  app->add_option("--in_flight", flags->in_flight, "Messages in flight")->delimiter(',')->check(CLI::Range(1, 64));
  app->add_option("--seconds", flags->seconds, "Of a round")->check(CLI::Range(0.001, 60.0));
  app->add_option("--rounds", flags->rounds, "Of each case")->check(CLI::Range(1, 1000));
  app->add_option("--only", flags->only, "Subjects; all by default")->delimiter(',');
  app->add_option("--cycle_bytes", flags->setup.cycle_bytes, "Of gradients, more than the last-level cache")
      ->check(CLI::Range(int64_t{1} << 20, int64_t{1} << 32));
  app->add_option("--channel_arguments", flags->setup.channel_arguments,
                  "More channel arguments for the gRPC references, key=number,...");
  app->add_option("--congestion", flags->setup.congestion, "Congestion control of the references' sockets");
  app->add_option("--socket_buffer_bytes", flags->setup.socket_buffer_bytes, "Size of the references' socket buffers");
  app->add_option("--unix_socket", flags->setup.unix_socket, "Unix-domain sockets for the references");
  app->add_flag("--tls", flags->tls, "Both ends prove who they are, over TLS; subjects that speak it");
  // For this program's own use.
  app->add_option("--role", flags->role)->check(CLI::IsMember({"server", "client"}))->group("");
  app->add_option("--address", flags->address)->group("");
  app->add_option("--credentials", flags->setup.credentials)->group("");
}

}  // namespace
}  // namespace rubato::bench

int main(int argc, char** argv) {
  rubato::UseHugePages();
  rubato::bench::Flags flags;
  CLI::App app("Speed of PushPull against sockets, gRPC and shared memory");
  rubato::bench::AddFlags(&app, &flags);
  CLI11_PARSE(app, argc, argv);
  const absl::Status status = flags.role.empty() ? rubato::bench::Measure(flags) : rubato::bench::PlayRole(flags);
  if (status.ok()) return 0;
  std::cerr << status << std::endl;
  return 1;
}
