#ifndef RUBATO_CLIENT_LINK_CHANNEL_H_
#define RUBATO_CLIENT_LINK_CHANNEL_H_

#include <deque>
#include <mutex>
#include <string>
#include <string_view>

#include "client/link/frame.h"

namespace rubato::client {

// One end of the socket pair between library and sidecar: sends and receives frames, and a file descriptor with one.
// Send from any thread, Receive on one thread at a time. Neither raises SIGPIPE.
//
//   Channel channel(descriptor);
//   if (std::string error = channel.Send(FrameKind::kPush, 0, body); !error.empty()) ...
//   Frame frame;
//   while (channel.Receive(&frame, 1.0, &error) == Channel::Received::kFrame) ...
class Channel {
 public:
  enum class Received {
    kFrame,
    // None came in time.
    kNothing,
    // The other end is gone.
    kClosed,
    // What came is no frame of this version; `error` says more. Nothing more can be received.
    kBad,
  };

  // Owns the descriptor, a connected stream socket.
  explicit Channel(int descriptor);
  ~Channel();
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  // Waits for room if there is none, kSendSecondsMax at most. What went wrong; empty: it was sent. The peer has a copy
  // of `passed`, unless it is -1.
  std::string Send(FrameKind kind, uint32_t request, std::string_view body, int passed = -1);
  // As Send, but it goes with what is sent next: the peer is woken once for all of them.
  void Hold(FrameKind kind, std::string_view body);
  Received Receive(Frame* frame, double seconds, std::string* error);
  // The descriptor that came with a frame that was received; -1: none did. The caller's from then on.
  int TakePassed();
  // Ends the connection: also the peer's, and what waits in Send or Receive on another thread.
  void Shutdown();

  static constexpr double kSendSecondsMax = 30;

 private:
  // Reads what is there. False at the end, or when that fails.
  bool Fill();
  // Takes a frame out of what was read. kNothing: it is not all there yet.
  Received Next(Frame* frame, std::string* error);

  // Writes bytes, the first ones of a frame with a copy of `passed`. Called with sending_.
  std::string Write(std::string_view first, std::string_view second, int passed);

  const int descriptor_;
  std::mutex sending_;
  std::string held_;  // Whole frames, to be sent with the next one.
  std::string buffer_;
  std::deque<int> passed_;
};

}  // namespace rubato::client

#endif  // RUBATO_CLIENT_LINK_CHANNEL_H_
