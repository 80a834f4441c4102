#include "client/library/sidecar_link.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace rubato::client {
namespace {

double Now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

}  // namespace

SidecarLink::~SidecarLink() {
  channel_.reset();
  process_.reset();
}

std::string SidecarLink::Broken(std::string why) {
  if (broken_.empty()) broken_ = std::move(why);
  return broken_;
}

void SidecarLink::Take(const Frame& frame) {
  if (frame.kind != FrameKind::kReply) return;
  const auto found = std::find_if(open_.begin(), open_.end(),
                                  [&](const auto& entry) { return entry.second.request == frame.request; });
  if (found == open_.end()) return;  // Nobody waits for it any more.
  Open& open = found->second;
  BodyReader reader(frame.body);
  ReplyBody reply;
  if (!reader.Get(&reply) || !reader.Text(&open.answer.error)) {
    open.answer = {.result = RUBATO_UNAVAILABLE, .error = "the sidecar's answer cannot be read"};
  } else {
    open.answer.result = static_cast<rubato_result>(reply.result);
    open.answer.body = frame.body.substr(frame.body.size() - reader.bytes_left());
  }
  open.answered = true;
}

SidecarLink::Answer SidecarLink::Ask(FrameKind kind, std::string_view body, double seconds, int passed) {
  if (!broken_.empty()) return {.result = RUBATO_UNAVAILABLE, .error = broken_};
  // What is not a number is no time.
  const double deadline = Now() + (seconds > 0 ? seconds : 0);
  auto found = open_.find(kind);
  if (found != open_.end() && found->second.body != body) {
    Forget(kind);
    found = open_.end();
  }
  if (found == open_.end()) {
    found = open_.emplace(kind, Open{.request = ++last_request_, .body = std::string(body)}).first;
    if (std::string error = channel_->Send(kind, last_request_, body, passed); !error.empty()) {
      return {.result = RUBATO_UNAVAILABLE, .error = Broken(process_->DescribeEnd() + ": " + error)};
    }
  }
  while (!found->second.answered) {
    Frame frame;
    std::string error;
    switch (channel_->Receive(&frame, std::max(deadline - Now(), 0.0), &error)) {
      case Channel::Received::kFrame:
        Take(frame);
        break;
      case Channel::Received::kNothing:
        return {.result = RUBATO_AGAIN};
      case Channel::Received::kClosed:
        return {.result = RUBATO_UNAVAILABLE, .error = Broken(process_->DescribeEnd())};
      case Channel::Received::kBad:
        return {.result = RUBATO_REFUSED, .error = Broken(error)};
    }
  }
  Answer answer = std::move(found->second.answer);
  open_.erase(found);
  return answer;
}

void SidecarLink::Forget(FrameKind kind) {
  const auto found = open_.find(kind);
  if (found == open_.end()) return;
  BodyWriter forgotten;
  forgotten.Put(found->second.request);
  Tell(FrameKind::kForget, forgotten.body());
  open_.erase(found);
}

std::string SidecarLink::TellWithNext(FrameKind kind, std::string_view body) {
  if (broken_.empty()) channel_->Hold(kind, body);
  return broken_;
}

std::string SidecarLink::Tell(FrameKind kind, std::string_view body) {
  if (!broken_.empty()) return broken_;
  std::string error = channel_->Send(kind, 0, body);
  return error.empty() ? error : Broken(process_->DescribeEnd() + ": " + error);
}

}  // namespace rubato::client
