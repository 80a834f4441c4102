#ifndef RUBATO_WORKER_PS_CLIENT_STEP_MACHINE_H_
#define RUBATO_WORKER_PS_CLIENT_STEP_MACHINE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "proto/parameter_server.pb.h"

namespace rubato::worker {

// A worker's side of the step protocol: what to ask which server, and when a step has begun. A *batch* is a group of
// chunks of one partition that always travel together. Pure; not thread-safe; owned by the PsClient.
//
// Life of a step: every batch's weights arrive (Have), the worker computes, pushes each batch once (Push), and each
// answer brings that batch's weights for the next step. A change of plan moves the next step: `moved()` is then true
// until Restart(), which asks again for the batches whose weights had come for the step that is abandoned.
//
//  1. A batch has at most one request open.
//  2. Nothing is pushed for a step before all of its weights have come, and at most once per batch.
//  3. (generation, step) of what is asked for only grows.
class StepMachine {
 public:
  enum class Kind { kPull, kPushPull };

  struct Request {
    uint64_t id = 0;
    int batch = 0;
    Kind kind = Kind::kPull;
    uint64_t generation = 0;
    int64_t step = 0;  // kPull: to begin. kPushPull: pushed.
  };

  class Sink {
   public:
    virtual ~Sink() = default;
    virtual void Send(const Request& request) = 0;
  };

  StepMachine(int batches, Sink* sink);

  // Asks for the first step of `plan` in every batch. Call once.
  void Start(const v1::Plan& plan);

  // All weights of the next step have come: it is now the current step. REQUIRES: complete().
  void BeginStep();
  // Pushes the batch's gradient of the current step. REQUIRES: BeginStep was called for it, and this batch was not
  // pushed since.
  void Push(int batch);
  // REQUIRES: moved().
  void Restart();
  // What has come for the next step is not what is needed: asks again. REQUIRES: Have(batch).
  void PullAgain(int batch) { PullNext(batch); }

  // Whether a request of the batch waits for its answer.
  bool HasOpen(int batch) const { return batches_[batch].open != 0; }
  // The batch of an open request; -1 for an old one.
  int BatchOf(uint64_t id) const;
  // An answer came. Returns an error when the worker must give up: Aborted when it is no member any more,
  // FailedPrecondition when the server refused.
  absl::Status OnReply(uint64_t id, const v1::ExchangeReply& reply);
  // The batch's open request may have been lost: sends it again under a new id. No effect if none is open.
  void Resend(int batch);

  // Whether the weights of the next step are there.
  bool Have(int batch) const { return batches_[batch].state == State::kHave; }
  bool complete() const { return have_ == static_cast<int>(batches_.size()); }
  bool moved() const { return moved_; }
  // Pushes of the current step that are not acknowledged.
  int open_pushes() const;

  // The step to begin next and its plan. BeginStep raises it by one.
  uint64_t generation() const { return next_.generation; }
  int64_t step() const { return next_.step; }
  uint64_t current_generation() const { return current_.generation; }
  int64_t current_step() const { return current_.step; }
  // The plan of generation(); amendments are not seen here.
  const v1::Plan& plan() const { return plan_; }
  // For tests that visit all states: appends all that what comes later depends on.
  void AppendState(std::string* state) const;

 private:
  enum class State {
    kHave,     // Weights of `next_` are there.
    kWorking,  // Weights of `current_` are in use; its push is to come.
    kPulling,  // Asked for `asked`.
    kPushing,  // Pushed `asked`, which also asks for the step after it.
    kStale,    // Weights of an abandoned step; Restart asks again.
  };
  struct Point {
    uint64_t generation = 0;
    int64_t step = 0;
    bool operator==(const Point&) const = default;
    auto operator<=>(const Point&) const = default;
  };
  struct Batch {
    State state = State::kStale;
    Point asked;
    // Id of the open request; 0 for none. An id's remainder modulo the number of batches is its batch's number.
    uint64_t open = 0;
  };

  void Ask(int batch, Kind kind, Point point);
  void PullNext(int batch) { Ask(batch, Kind::kPull, next_); }
  void MoveTo(Point point, const v1::Plan& plan);
  void Arrived(int batch);

  Sink* const sink_;
  std::vector<Batch> batches_;
  v1::Plan plan_;
  Point current_;  // Worked on.
  Point next_;
  int have_ = 0;
  bool moved_ = false;
  uint64_t asked_ = 0;  // Requests up to now.
};

}  // namespace rubato::worker

#endif  // RUBATO_WORKER_PS_CLIENT_STEP_MACHINE_H_
