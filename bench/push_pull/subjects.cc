#include "bench/push_pull/bytebuffer_stream.h"
#include "bench/push_pull/bytebuffer_unary.h"
#include "bench/push_pull/rubato_subject.h"
#include "bench/push_pull/shm_subject.h"
#include "bench/push_pull/stub_subject.h"
#include "bench/push_pull/subject.h"
#include "bench/push_pull/tcp_subject.h"
#include "common/transport/process_tuning.h"

namespace rubato::bench {
namespace {

// With the process set up as in the servers' and workers' own main.
template <auto Serve>
absl::Status TunedServe(const Setup& setup, const Ready& ready) {
  TuneProcess();
  ScheduleAsBatch();
  return Serve(setup, ready);
}

template <auto Connect>
absl::StatusOr<std::unique_ptr<Client>> TunedConnect(const Setup& setup, const std::string& address) {
  TuneProcess();
  ScheduleAsBatch();
  return Connect(setup, address);
}

template <auto Serve, auto Connect>
Subject TunedSubject(const char* name) {
  return {.name = name, .serve = TunedServe<Serve>, .connect = TunedConnect<Connect>};
}

Subject WithTls(Subject subject) {
  subject.tls = true;
  return subject;
}

Subject ManyInFlight(Subject subject) {
  subject.one_in_flight = false;
  return subject;
}

}  // namespace

std::vector<Subject> Subjects() {
  return {
      TunedSubject<ServeTcp, ConnectTcp>("tcp"),
      WithTls(TunedSubject<ServeByteBufferUnary, ConnectByteBufferUnary>("bytebuffer_unary")),
      WithTls(TunedSubject<ServeByteBufferStream, ConnectByteBufferStream>("bytebuffer_stream")),
      {.name = "stub", .serve = ServeStub, .connect = ConnectStub},
      WithTls(TunedSubject<ServeRubato, ConnectRubato>("rubato")),
      TunedSubject<ServeShm, ConnectShm>("shm"),
      ManyInFlight(TunedSubject<ServeRubatoShm, ConnectRubatoShm>("rubato_shm")),
  };
}

}  // namespace rubato::bench
