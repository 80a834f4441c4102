#ifndef RUBATO_CLIENT_LIBRARY_STEP_STATE_H_
#define RUBATO_CLIENT_LIBRARY_STEP_STATE_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "client/link/frame.h"

namespace rubato::client {

// What of a step a client has said already, and what it may say next. Every call returns what is wrong with it, with
// the tensor's name; empty: it is fine, and counts. Pure; not thread-safe.
//
//   steps.Begin(step);
//   if (std::string error = steps.Push(tensor, 64); !error.empty()) return Invalid(error);
class StepState {
 public:
  // By tensor.
  explicit StepState(std::vector<std::string> names) : names_(std::move(names)), pushed_(names_.size(), false) {}

  // Whether the next step may begin.
  std::string CheckBegin() const;
  // Whether the client may wait for the tensor's weights in the next step.
  std::string CheckAwait(uint32_t tensor) const;
  // It has begun. When the job has gone back to a checkpoint, leases are void.
  void Begin(const StepBody& step);

  std::string Push(uint32_t tensor, uint64_t examples);
  std::string PushAbsent(uint32_t tensor);
  std::string Skip();
  // What is said of a step, or asked, before its first push; `what` names it.
  std::string CheckBeforePush(const char* what) const;
  // An epoch is said of a step before its first push, or before it begins.
  std::string CheckEpoch() const;

  void AddLease(const LeaseBody& lease) { leases_[lease.shard] = {.next = lease.begin, .end = lease.end}; }
  // Slices of a lease follow each other, and a step has one.
  std::string SetSlice(const SliceBody& slice);

  // Nothing of the step is left to be pushed, or none has begun.
  bool complete() const { return missing_ == 0; }

 private:
  struct Lease {
    // Of the first example that no slice had.
    int64_t next = 0;
    int64_t end = 0;
  };

  std::string CheckTensor(uint32_t tensor) const;
  std::string CheckPush(uint32_t tensor) const;
  void Count(uint32_t tensor);

  const std::vector<std::string> names_;
  bool begun_ = false;
  int64_t step_ = 0;
  uint64_t rollbacks_ = 0;
  std::vector<bool> pushed_;
  size_t missing_ = 0;
  bool has_slice_ = false;
  // Of the tensors that were pushed in this step; 0: none was.
  uint64_t examples_ = 0;
  // By shard.
  std::map<uint64_t, Lease> leases_;
};

}  // namespace rubato::client

#endif  // RUBATO_CLIENT_LIBRARY_STEP_STATE_H_
