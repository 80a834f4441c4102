#ifndef RUBATO_CLI_DOCTOR_EXCHANGE_PROBE_H_
#define RUBATO_CLI_DOCTOR_EXCHANGE_PROBE_H_

#include <cstddef>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cli/doctor/judge.h"
#include "common/clock.h"
#include "common/transport/exchange_server.h"

namespace rubato {

// Answers each push of the data path with as many bytes, over the transport and wire format of a server: the other end
// of MeasureExchange. Thread-safe.
//
//   RUBATO_ASSIGN_OR_RETURN(auto probe, ProbeServer::Create("0.0.0.0:7071"));
//   ... probe->port() ...
class ProbeServer : private ExchangeServer::Handler {
 public:
  // Of one push; larger ones are refused.
  static constexpr size_t kMaxPayloadBytes = size_t{4} << 20;

  // "host:port", as ExchangeServer's. Unavailable: the port is taken, or the address is not one of this host's.
  static absl::StatusOr<std::unique_ptr<ProbeServer>> Create(const std::string& listen);

  int port() const { return server_->port(); }

 private:
  ProbeServer() : weights_(std::make_shared<const std::string>(kMaxPayloadBytes, '\0')) {}
  void OnMessage(std::shared_ptr<Connection> connection, grpc::ByteBuffer&& message) override;
  void OnClosed(uint64_t) override {}

  const std::shared_ptr<const std::string> weights_;
  std::unique_ptr<ExchangeServer> server_;  // Last: it calls the handler.
};

// Pushes to a ProbeServer, and pulls as much from it, for a time: messages of 1 MiB with several in flight, then small
// ones one by one. Unavailable, DeadlineExceeded: it cannot be reached. FailedPrecondition: something else answers
// there, or a release that speaks another protocol.
absl::StatusOr<ExchangeFacts> MeasureExchange(const std::string& address, absl::Duration duration, const Clock* clock);

}  // namespace rubato

#endif  // RUBATO_CLI_DOCTOR_EXCHANGE_PROBE_H_
