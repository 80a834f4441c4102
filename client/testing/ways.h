#ifndef RUBATO_CLIENT_TESTING_WAYS_H_
#define RUBATO_CLIENT_TESTING_WAYS_H_

#include "client/testing/job.h"

namespace rubato::client {

// Ways to take part in a job. Each returns when all was as it should be, and ends the program otherwise.

// What a client computes and says (step_ways.cc).

// Steps with MEAN: the weights are the mean of the two workers' gradients, weighted 1 to 3; worker 1 has none of the
// large tensor in every fourth step, and none of either in every fifth; in step 7 worker 0 pushes what is no number.
void Mean(Job* job);
// Steps with SGD equal the formula, also when the learning rate of one group changes.
void Sgd(Job* job);
// Leased data: says which examples it pushed.
void Lease(Job* job);
// An optimizer that has stepped before: servers go on with its state, which can be fetched. Then a checkpoint, for
// which both go on with steps of nothing.
void State(Job* job);
// Values, barriers, a change of mode and a checkpoint.
void Talk(Job* job);

// Rows of a table, of a model that has nothing else: keys in any order, read and pushed (row_ways.cc).
void Rows(Job* job);
// Steps until the job has gone back to a checkpoint, and some more: rows always are what the step's number says.
void RowsRollback(Job* job);

// What goes wrong, and ends (failure_ways.cc).

// Steps until the other worker is gone, and some more; or, to be `killed`, for ever.
void Survive(Job* job, bool killed);
// Steps until the job has gone back to a checkpoint, and some more: weights always are what the step's number says.
void Rollback(Job* job);
// Steps while the coordinator is away: a value that is put meanwhile is there when it is back, and who waits for it
// since before gets it.
void Restart(Job* job);
// Does nothing in the middle of a step, until it is asked to stop: by then it was given up.
void Silent(Job* job);
// What a client is told that has no coordinator, no sidecar, or one that dies.
void Errors(Job* job);
// Models differ: both workers are told so by name.
void Differ(Job* job);
// Steps until it is told that it is over: SIGTERM reaches it, or the job is stopped.
void UntilEnded(Job* job);

}  // namespace rubato::client

#endif  // RUBATO_CLIENT_TESTING_WAYS_H_
