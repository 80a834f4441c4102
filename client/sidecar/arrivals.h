#ifndef RUBATO_CLIENT_SIDECAR_ARRIVALS_H_
#define RUBATO_CLIENT_SIDECAR_ARRIVALS_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "common/mutex.h"

namespace rubato::client {

// How many weights of the next step are in place, for a client that computes with the first ones while others come:
// tensors count in the model's order. What it was told counts until the next step has begun. If the step is moved in
// between and other weights come in their place, what the client has computed is void, which it hears when it begins.
// Thread-safe.
//
//   arrivals.Want(request, 3);         // The client's call: answered now or later, with how many there are.
//   arrivals.Arrived(4);
//   if (!arrivals.TakeVoid()) ...      // The client begins the step:
//   arrivals.Begun();
class Arrivals {
 public:
  // The first `tensors` of the model are there. Called on the thread that has called Want or Arrived.
  using Answer = std::function<void(uint32_t request, uint32_t tensors)>;

  explicit Arrivals(Answer answer) : answer_(std::move(answer)) {}

  // The client waits for a tensor, and for no other one any more.
  void Want(uint32_t request, uint32_t tensor);
  // Nobody waits for the answer to this request any more.
  void Forget(uint32_t request);
  // The request that waits, to be answered by the caller.
  std::optional<uint32_t> Take();
  // Whether the client has ever waited for a tensor.
  bool used();

  // So many are in place.
  void Arrived(uint32_t tensors);
  // They are not those of the next step any more, and none is there. Returns how many the client may have used.
  uint32_t Moved();
  // What it may have used has other weights now.
  void MakeVoid();
  // Whether it is void, once.
  bool TakeVoid();
  // The client knows of the step: what arrives from now on is of the next one.
  void Begun();

 private:
  const Answer answer_;
  Mutex mu_;
  bool used_ ABSL_GUARDED_BY(mu_) = false;
  bool void_ ABSL_GUARDED_BY(mu_) = false;
  uint32_t there_ ABSL_GUARDED_BY(mu_) = 0;
  uint32_t told_ ABSL_GUARDED_BY(mu_) = 0;
  // The request that waits, and its tensor.
  std::optional<std::pair<uint32_t, uint32_t>> waiting_ ABSL_GUARDED_BY(mu_);
};

}  // namespace rubato::client

#endif  // RUBATO_CLIENT_SIDECAR_ARRIVALS_H_
