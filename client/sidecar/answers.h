#ifndef RUBATO_CLIENT_SIDECAR_ANSWERS_H_
#define RUBATO_CLIENT_SIDECAR_ANSWERS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "client/link/channel.h"
#include "client/rubato_client.h"

namespace rubato::client {

// The sidecar's answers to the library's requests. One that cannot be sent is dropped: the client is gone, which the
// channel's reader notices. Thread-safe.
class Answers {
 public:
  explicit Answers(Channel* channel) : channel_(channel) {}

  // `body`: what the request's kind says.
  void Send(uint32_t request, rubato_result result, absl::string_view error = "", absl::string_view body = "");
  // Of a request to the coordinator. Nothing if it was cancelled: nobody waits for it.
  void SendStatus(uint32_t request, const absl::Status& status);
  // The request is no message of this version.
  void SendUnreadable(uint32_t request);

 private:
  Channel* const channel_;
};

}  // namespace rubato::client

#endif  // RUBATO_CLIENT_SIDECAR_ANSWERS_H_
