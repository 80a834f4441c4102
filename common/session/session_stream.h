#ifndef RUBATO_COMMON_SESSION_SESSION_STREAM_H_
#define RUBATO_COMMON_SESSION_SESSION_STREAM_H_

#include <grpcpp/client_context.h>
#include <grpcpp/support/client_callback.h>

#include <deque>
#include <functional>
#include <optional>

#include "absl/status/status.h"
#include "common/mutex.h"
#include "proto/coordinator.grpc.pb.h"

namespace rubato {

// One Session stream, made for a single owning thread: gRPC's threads only put what happened into it and call `notify`.
// Thread-safe. To be destroyed after done() alone.
class SessionStream final : public grpc::ClientBidiReactor<v1::TaskMessage, v1::Directive> {
 public:
  // Opens the stream. `stub` outlives it. `notify` is called on gRPC's threads with the stream's lock held, and never
  // after done() was seen; it must not call the stream.
  SessionStream(v1::Coordinator::Stub* stub, std::function<void()> notify);

  // Begins to write. False, and nothing happens, while the last message is being written or the stream is broken.
  bool Write(const v1::TaskMessage& message);
  // Nothing more will be written. Has no effect while a message is being written.
  void CloseWrites();
  // Breaks the stream; done() follows soon.
  void Cancel();

  // What has arrived since the last call.
  std::deque<v1::Directive> TakeDirectives();
  bool writing();
  // Set once gRPC is through with the stream.
  std::optional<absl::Status> done();

 private:
  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnWritesDoneDone(bool ok) override;
  void OnDone(const grpc::Status& status) override;
  void Break() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  grpc::ClientContext context_;
  const std::function<void()> notify_;
  Mutex mu_;
  v1::Directive incoming_ ABSL_GUARDED_BY(mu_);
  std::deque<v1::Directive> received_ ABSL_GUARDED_BY(mu_);
  v1::TaskMessage outgoing_ ABSL_GUARDED_BY(mu_);
  bool writing_ ABSL_GUARDED_BY(mu_) = false;
  bool writes_closed_ ABSL_GUARDED_BY(mu_) = false;
  // No operation may be started any more; the hold that allows starting them is given back.
  bool broken_ ABSL_GUARDED_BY(mu_) = false;
  std::optional<absl::Status> done_ ABSL_GUARDED_BY(mu_);
};

}  // namespace rubato

#endif  // RUBATO_COMMON_SESSION_SESSION_STREAM_H_
