#ifndef RUBATO_CLIENT_LIBRARY_SIDECAR_LINK_H_
#define RUBATO_CLIENT_LIBRARY_SIDECAR_LINK_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "client/library/sidecar_process.h"
#include "client/link/channel.h"
#include "client/rubato_client.h"

namespace rubato::client {

// Requests to the sidecar and its answers. A request whose answer does not come in time stays open: asking the same
// again waits on. Used by one thread at a time.
class SidecarLink {
 public:
  struct Answer {
    rubato_result result = RUBATO_OK;
    // What went wrong.
    std::string error;
    // What the request's kind says.
    std::string body;
  };

  SidecarLink(std::unique_ptr<SidecarProcess> process, int descriptor)
      : process_(std::move(process)), channel_(std::make_unique<Channel>(descriptor)) {}
  // Ends the connection, and so the sidecar, and waits for its end.
  ~SidecarLink();

  // RUBATO_AGAIN when the answer is not there within `seconds`. One request of a kind is open: another `body` takes the
  // place of the one before, whose answer is dropped. `passed`: a file descriptor that goes with it, or -1.
  Answer Ask(FrameKind kind, std::string_view body, double seconds, int passed = -1);
  // Nobody waits for the answer to the open request of this kind any more.
  void Forget(FrameKind kind);
  // A message without an answer. Empty, or what went wrong.
  std::string Tell(FrameKind kind, std::string_view body);
  // As Tell, together with what comes next.
  std::string TellWithNext(FrameKind kind, std::string_view body);

  const SidecarProcess& process() const { return *process_; }
  // The connection and the process belong to this process's parent.
  void Abandon() { process_->Abandon(); }

 private:
  struct Open {
    uint32_t request = 0;
    std::string body;
    bool answered = false;
    Answer answer;
  };

  // Takes an answer to its request.
  void Take(const Frame& frame);
  // The connection is of no use any more; says why.
  std::string Broken(std::string why);

  std::unique_ptr<SidecarProcess> process_;
  std::unique_ptr<Channel> channel_;
  uint32_t last_request_ = 0;
  std::map<FrameKind, Open> open_;
  std::string broken_;
};

}  // namespace rubato::client

#endif  // RUBATO_CLIENT_LIBRARY_SIDECAR_LINK_H_
