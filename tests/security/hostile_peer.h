#ifndef RUBATO_TESTS_SECURITY_HOSTILE_PEER_H_
#define RUBATO_TESTS_SECURITY_HOSTILE_PEER_H_

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/file_descriptor.h"
#include "common/security/task_security.h"
#include "proto/coordinator.grpc.pb.h"
#include "proto/parameter_server.grpc.pb.h"

namespace rubato {

// Somebody with a member's certificate who asks a task at "127.0.0.1:port" for what no task asks for.
class HostilePeer {
 public:
  using Exchange = grpc::ClientReaderWriter<v1::ExchangeRequest, v1::ExchangeReply>;

  HostilePeer(int port, Party to, const TaskSecurity* security);

  // How a session ends that registers as `task`; OK: it is registered.
  grpc::Status Register(const v1::TaskId& task);
  // Sends as many requests and hears each answer. How often each text came, or what ended the stream.
  std::map<std::string, int> Ask(const std::function<v1::ExchangeRequest(uint64_t id)>& request, int count);
  // Sends as many, then one every now and then, and hears nothing until the other side ends the stream: how it does.
  grpc::Status AskWithoutReading(const std::function<v1::ExchangeRequest(uint64_t id)>& request, uint64_t at_once);
  // How a call ends with one message of so many MiB, which takes the memory of one.
  grpc::Status SendLarge(const std::string& method, size_t mib);

  // How calls of a method end that are streams and say nothing, `count` of them on one connection. Waits until all but
  // `may_stay` have ended.
  struct Streams {
    // By their status' text.
    std::map<std::string, int> refused;
    // Those that are left, which are cancelled then.
    size_t open = 0;
  };
  Streams OpenStreams(const std::string& method, int count, size_t may_stay);

 private:
  const std::shared_ptr<grpc::Channel> channel_;
};

// So many TCP connections on which nothing is said.
std::vector<FileDescriptor> ConnectSilently(int port, int count);
// How many of them the other side ends within half a minute.
int CountEnded(const std::vector<FileDescriptor>& connections);

// For tests with more connections than a process usually may have.
void RaiseDescriptorLimit();

}  // namespace rubato

#endif  // RUBATO_TESTS_SECURITY_HOSTILE_PEER_H_
