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
  // By tensor, and by table.
  explicit StepState(const std::vector<std::string>& tensors, const std::vector<std::string>& tables = {});

  // Whether the next step may begin.
  std::string CheckBegin() const;
  // Whether the client may wait for the tensor's weights in the next step.
  std::string CheckAwait(uint32_t tensor) const;
  // It has begun. When the job has gone back to a checkpoint, leases are void.
  void Begin(const StepBody& step);

  std::string Push(uint32_t tensor, uint64_t examples);
  std::string PushAbsent(uint32_t tensor);
  std::string PushRows(uint32_t table, uint64_t examples);
  // Whether the client may ask for rows of the next step. Nothing counts.
  std::string CheckAskRows(uint32_t table) const;
  std::string CheckTable(uint32_t table) const;
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
  // Parts: tensors, and tables behind them.
  std::string CheckPush(size_t part) const;
  std::string CountPush(size_t part, uint64_t examples, const char* instead);
  void Count(size_t part);

  const size_t tensors_;
  // By part, as in "tensor weight" and "table users".
  std::vector<std::string> parts_;
  bool begun_ = false;
  int64_t step_ = 0;
  uint64_t rollbacks_ = 0;
  std::vector<bool> pushed_;
  size_t missing_ = 0;
  bool has_slice_ = false;
  // Of what was pushed in this step; 0: nothing was.
  uint64_t examples_ = 0;
  // By shard.
  std::map<uint64_t, Lease> leases_;
};

}  // namespace rubato::client

#endif  // RUBATO_CLIENT_LIBRARY_STEP_STATE_H_
