#include "client/sidecar/answers.h"

#include <string>

#include "client/link/frame.h"
#include "client/sidecar/results.h"

namespace rubato::client {

void Answers::Send(uint32_t request, rubato_result result, absl::string_view error, absl::string_view body) {
  BodyWriter writer;
  writer.Put(ReplyBody{.result = result}).Text({error.data(), error.size()});
  std::string frame = writer.body();
  frame.append(body.data(), body.size());
  channel_->Send(FrameKind::kReply, request, frame);
}

void Answers::SendStatus(uint32_t request, const absl::Status& status) {
  if (absl::IsCancelled(status)) return;
  Send(request, ResultOfRequest(status), status.message());
}

void Answers::SendUnreadable(uint32_t request) {
  Send(request, RUBATO_UNAVAILABLE, "the sidecar cannot read the request");
}

}  // namespace rubato::client
