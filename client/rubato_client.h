/* Rubato's client: take part in a job as a worker whose model is its own.
 *
 * A client has tensors of float32. Servers hold their weights; in each step the client gets the weights, computes
 * gradients of its part of the data and pushes them, under the consistency rules of the job (docs/architecture.md),
 * which an operator may change while it runs. Plain C, for any language; the library needs libc alone. What speaks gRPC
 * is a program beside it, the sidecar, which shares the tensors' memory with this process and lives as long as the
 * client.
 *
 *   rubato_client* client;
 *   if (rubato_open(&options, &client) != RUBATO_OK) { puts(rubato_error(NULL)); return 1; }
 *   rubato_define(client, &model);               // All workers define the same model.
 *   copy_to(rubato_weights(client, 0));          // Initial weights: those of one worker count.
 *   rubato_start(client);
 *   rubato_step step;
 *   while (more_data() && rubato_begin(client, &step, 60.0) == RUBATO_OK) {
 *     compute(rubato_weights(client, 0), rubato_gradient(client, 0));
 *     rubato_push(client, 0, 64);                // Each tensor once a step, in any order.
 *   }
 *   rubato_close(client, NULL);
 *
 * One thread at a time uses a client, but for what says that any may. A call that waits returns RUBATO_AGAIN after the
 * given seconds at the latest, with nothing lost: call it again. So a caller can look after its signals in between.
 * Every result below 0 has a text in rubato_error. After fork() a child must not use its parent's client: calls return
 * RUBATO_FORKED.
 */
#ifndef RUBATO_CLIENT_RUBATO_CLIENT_H_
#define RUBATO_CLIENT_RUBATO_CLIENT_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Raised by every change that is not an addition at the end of a struct or a new function. */
#define RUBATO_ABI_VERSION 1u

#if defined(__GNUC__)
#define RUBATO_API __attribute__((visibility("default")))
#else
#define RUBATO_API
#endif

/* In C++ too, any int may come as one of these. */
#ifdef __cplusplus
#define RUBATO_ENUM : int
#else
#define RUBATO_ENUM
#endif

typedef struct rubato_client rubato_client;

typedef enum rubato_result RUBATO_ENUM {
  RUBATO_OK = 0,
  /* Not yet: call again. */
  RUBATO_AGAIN = 1,
  /* The job is over, was stopped, or needs nothing more of this worker. Not an error; close the client. */
  RUBATO_ENDED = 2,
  /* rubato_begin: what was computed with weights that rubato_await has announced is void. */
  RUBATO_MOVED = 3,
  /* An argument, or a call at the wrong time; nothing has changed. */
  RUBATO_INVALID = -1,
  /* Models differ between workers, or the coordinator refuses this one. */
  RUBATO_REFUSED = -2,
  /* A coordinator, a server or the sidecar cannot be reached, or a wait took longer than the job allows. */
  RUBATO_UNAVAILABLE = -3,
  /* The job has failed, or this worker was evicted. */
  RUBATO_FAILED = -4,
  RUBATO_FORKED = -5,
  RUBATO_NOT_FOUND = -6
} rubato_result;

typedef enum rubato_mode RUBATO_ENUM { RUBATO_SYNC = 1, RUBATO_SSP = 2, RUBATO_ASYNC = 3 } rubato_mode;

/* As OptimizerConfig.Algorithm. */
typedef enum rubato_algorithm RUBATO_ENUM {
  RUBATO_SGD = 1,
  RUBATO_MOMENTUM = 2,
  RUBATO_NESTEROV = 3,
  RUBATO_ADAGRAD = 4,
  RUBATO_RMSPROP = 5,
  RUBATO_ADAM = 6,
  RUBATO_ADAMW = 7,
  /* The servers do not update anything: the weights of the next step are the mean of this one's gradients. SYNC alone.
   */
  RUBATO_MEAN = 8
} rubato_algorithm;

typedef struct rubato_options {
  /* sizeof(rubato_options) of the caller. */
  size_t struct_bytes;
  /* "host:port" of the job's coordinator. */
  const char* coordinator;
  /* Path of the sidecar program. NULL: "rubato-sidecar" beside this library, otherwise in PATH. */
  const char* sidecar;
  /* Which worker this is, from 0. */
  uint32_t rank;
  /* How long to wait for a coordinator that cannot be reached; 0: 60 s. */
  double timeout_seconds;
  /* Where the sidecar writes its log. NULL: standard error, warnings and errors alone. */
  const char* log_path;
} rubato_options;

typedef struct rubato_tensor {
  /* Unique in the model. */
  const char* name;
  const int64_t* shape;
  uint32_t dimensions; /* 0: one number. */
  uint32_t group;
} rubato_tensor;

/* As TableConfig.Algorithm. */
typedef enum rubato_table_algorithm RUBATO_ENUM {
  RUBATO_TABLE_SGD = 1,
  RUBATO_TABLE_ADAGRAD = 2,
  RUBATO_TABLE_ROW_WISE_ADAGRAD = 3,
  RUBATO_TABLE_LAZY_ADAM = 4,
  RUBATO_TABLE_FTRL = 5
} rubato_table_algorithm;

/* A table of rows by 64-bit keys. They stay on the servers, which update them by the table's own algorithm; a client
 * reads and pushes those that its examples need. A key that nobody has pushed reads as its initial row, and takes no
 * memory. As TableConfig, where what each number may be is said. */
typedef struct rubato_table {
  /* Unique among tables and tensors: letters, digits, '-', '_' or '.'. */
  const char* name;
  /* Floats in a row. */
  int64_t dimension;
  rubato_table_algorithm algorithm;
  /* For the whole job, times the learning_rate_scale of its plan. */
  double learning_rate;
  /* Initial rows are uniform in [-initial_bound, initial_bound); 0 with FTRL. */
  double initial_bound;
  /* Those that the algorithm takes; the others are ignored. */
  double epsilon, beta1, beta2, beta, l1, l2;
  /* Into how many parts it is dealt to servers, and what it may take on each of them. 0: the job's defaults. */
  uint32_t shards;
  uint64_t memory_bytes;
} rubato_table;

/* Which keys of a table have a row, and for how long. As TableConfig, where what each number may be is said. */
typedef struct rubato_admission {
  /* With which push a key gets its row; until then it reads its initial row, and its gradients are dropped. 0: 1, the
   * first. */
  uint32_t admit_after;
  /* Bytes that pushes are counted in if that is over 1. 0: the job's default. */
  uint64_t counters;
  /* A row without an update for so many steps is removed. 0: none is. */
  uint64_t expire_after_steps;
  /* Beyond so many rows those go whose last update is the longest ago. 0: no limit but memory_bytes. */
  uint64_t most_rows;
} rubato_admission;

/* How the numbers of rows are kept and sent. */
typedef enum rubato_number RUBATO_ENUM {
  RUBATO_FLOAT32 = 0,
  /* The upper half of a float32. */
  RUBATO_BF16 = 1
} rubato_number;

/* Of a table's rows, as TableConfig. The client reads and pushes floats, whatever this is. */
typedef struct rubato_row_format {
  /* Weights in servers' memory; updates are rounded up or down at random. */
  rubato_number precision;
  /* Gradients and rows in messages. */
  rubato_number push, pull;
} rubato_row_format;

/* Those that the algorithm takes; the others are ignored. As in OptimizerConfig; the learning rate may be 0. */
typedef struct rubato_hyperparameters {
  double learning_rate, weight_decay, momentum, beta1, beta2, rho, epsilon;
} rubato_hyperparameters;

typedef struct rubato_model {
  size_t struct_bytes;
  const rubato_tensor* tensors;
  uint32_t tensor_count;
  /* One entry a group: the values until rubato_set_hyperparameters. */
  const rubato_hyperparameters* groups;
  uint32_t group_count;
  rubato_algorithm algorithm;
  /* ADAGRAD: what the accumulators start with. */
  double initial_accumulator;
  /* Data that the coordinator leases (rubato_lease): how many examples there are, and how many make a shard. 0
   * examples: the client has its data by itself, and the job ends when the last worker closes. 0 in a shard: the job's
   * default. */
  int64_t leased_examples;
  int64_t shard_examples;
  /* Passes over leased data. */
  int64_t epochs;
  /* A model has a tensor or a table at least. */
  const rubato_table* tables;
  uint32_t table_count;
  /* One entry a table. NULL: every key that was pushed has a row, for ever. */
  const rubato_admission* admission;
  /* One entry a table. NULL: float32. */
  const rubato_row_format* row_formats;
  /* Not 0: the weights of a step stay in their memory until the next rubato_begin, which puts the next ones there, so
   * that a model may have its parameters there. rubato_close leaves them there too (rubato_free_weights). Without
   * rubato_await. */
  int keep_weights;
} rubato_model;

typedef struct rubato_step {
  /* Counted from 0; the same on all workers in SYNC. */
  int64_t step;
  /* The plan that it belongs to. */
  uint64_t generation;
  rubato_mode mode;
  int64_t staleness_bound;
  uint32_t workers; /* Members of the plan. */
  double learning_rate_scale;
  /* How often the job has gone back to a checkpoint. When it grows, `step` is lower than before, weights are those of
   * the checkpoint, and leases from before are void. */
  uint64_t rollbacks;
} rubato_step;

typedef struct rubato_lease_range {
  uint64_t shard;
  int64_t epoch;
  /* Positions [begin, end) in the epoch's order of examples. */
  int64_t begin, end;
} rubato_lease_range;

/* Of this library. Any thread. */
RUBATO_API uint32_t rubato_abi_version(void);
RUBATO_API const char* rubato_version(void);

/* Starts the sidecar and connects to the coordinator. */
RUBATO_API rubato_result rubato_open(const rubato_options* options, rubato_client** client);

/* What went wrong last; "" if nothing did. NULL: in rubato_open or rubato_close on this thread. Valid until the
 * client's next call. */
RUBATO_API const char* rubato_error(const rubato_client* client);

/* The tensors and tables, and how servers update them. Once. RUBATO_REFUSED names the first that differ from those of
 * the worker that came first. Allocates the memory of weights and gradients, which starts with zeros. */
RUBATO_API rubato_result rubato_define(rubato_client* client, const rubato_model* model);

/* Memory of a tensor, dense and in C order, aligned to 64 bytes; valid until rubato_close. Weights: the initial ones
 * until rubato_start, from then on to be read between rubato_begin (of a tensor: rubato_await) and the first
 * rubato_push of the step (keep_weights: the next rubato_begin); gradients: to be written after rubato_begin, and left
 * alone once pushed, until the next one. NULL: no such tensor. Any thread. */
RUBATO_API float* rubato_weights(rubato_client* client, uint32_t tensor);
RUBATO_API float* rubato_gradient(rubato_client* client, uint32_t tensor);

/* With keep_weights, after rubato_close: gives back the memory of all weights. `weights`: what rubato_weights has
 * returned for tensor 0; nothing happens if it is something else. Any thread. */
RUBATO_API void rubato_free_weights(float* weights);

/* Of an optimizer that has stepped before: what it keeps of a tensor, with which the servers go on. `values`: as many
 * as the tensor has elements. `slot`: MOMENTUM, NESTEROV: 0, the velocity; ADAGRAD: 0, the sum of squares; RMSPROP: 0,
 * their mean; ADAM, ADAMW: 0 and 1, the first and the second moment. `updates`: how many steps it stands for, the t of
 * Adam's bias correction; the same in both slots. Between rubato_define and rubato_start; what is left out is as in a
 * new optimizer. It counts where the weights beside it do (rubato_start). */
RUBATO_API rubato_result rubato_set_state(rubato_client* client, uint32_t tensor, uint32_t slot, const float* values,
                                          int64_t updates);

/* The initial weights are in place: registers as a worker. Those of the worker with the lowest index count, or those of
 * the checkpoint that the job goes on from. */
RUBATO_API rubato_result rubato_start(rubato_client* client);

/* Waits until the weights of the next step are in place, and begins it. All pushes of the step before are acknowledged
 * then. Waits for `seconds` at most. RUBATO_INVALID: a tensor of the step before was not pushed; the text names it.
 * RUBATO_MOVED, never without rubato_await: the job's plan has changed, or it has gone back to a checkpoint, and
 * weights that were used already have others in their place now. Nothing was begun: drop what was computed, and call
 * again. */
RUBATO_API rubato_result rubato_begin(rubato_client* client, rubato_step* step, double seconds);

/* With keep_weights, between rubato_begin and the first rubato_push: whether the tensor's memory still has the weights
 * of the step, bit by bit (1), or others were written there (0). */
RUBATO_API rubato_result rubato_has_weights(rubato_client* client, uint32_t tensor, int* has, double seconds);

/* From the next push on. RUBATO_INVALID: no such group, or a value out of range. */
RUBATO_API rubato_result rubato_set_hyperparameters(rubato_client* client, uint32_t group,
                                                    const rubato_hyperparameters* values);
/* The examples of this step are [begin, end) of a leased shard, beginning where the last slice of it ended. Before the
 * step's first push. */
RUBATO_API rubato_result rubato_set_slice(rubato_client* client, uint64_t shard, int64_t begin, int64_t end);
/* Position in epochs of this step, for status and curves. Before its first push, also before it begins. */
RUBATO_API rubato_result rubato_set_epoch(rubato_client* client, double epoch);

/* The tensor's gradient is complete: it is sent while others are computed, a little one with the next. `examples` is
 * its weight in a mean, above 0, and the same for all tensors of a step. */
RUBATO_API rubato_result rubato_push(rubato_client* client, uint32_t tensor, uint64_t examples);
/* This worker has no gradient of the tensor in this step: it does not count in the mean. */
RUBATO_API rubato_result rubato_push_absent(rubato_client* client, uint32_t tensor);
/* Contributes nothing to this step: all tensors that were not pushed are absent. */
RUBATO_API rubato_result rubato_skip(rubato_client* client);

/* Sums over the examples of this step, for status and curves: loss, and how many were right (below 0: not known). */
RUBATO_API rubato_result rubato_report(rubato_client* client, uint64_t examples, double loss_sum, double correct);

/* The next part of the data, when all of the last one was pushed. RUBATO_ENDED: the data is used up. RUBATO_AGAIN: what
 * is left is leased to others, or the answer is not there yet; while others train, this worker goes on with
 * rubato_begin and rubato_skip, or they would wait for it. */
RUBATO_API rubato_result rubato_lease(rubato_client* client, rubato_lease_range* range, double seconds);

/* Values that workers tell each other, up to 1 MiB, once one of them has defined the model. rubato_get copies at most
 * `capacity` bytes and says in `bytes` how many there are. RUBATO_AGAIN: nobody has put it yet. */
RUBATO_API rubato_result rubato_put(rubato_client* client, const char* key, const void* value, size_t bytes);
RUBATO_API rubato_result rubato_get(rubato_client* client, const char* key, void* value, size_t capacity, size_t* bytes,
                                    double seconds);
RUBATO_API rubato_result rubato_erase(rubato_client* client, const char* key);
/* Waits until `count` workers are here. */
RUBATO_API rubato_result rubato_barrier(rubato_client* client, const char* name, uint32_t count, double seconds);

/* Changes the job's mode. 0 as quorum: all workers; 0 as learning_rate_scale: in proportion to the contributions in one
 * update, or to their square root with optimizers that divide by the gradient's size. Returns when the change is
 * decided. */
RUBATO_API rubato_result rubato_switch(rubato_client* client, rubato_mode mode, int64_t staleness_bound,
                                       uint32_t quorum, double learning_rate_scale, double seconds);
/* Has the job write a checkpoint now. To be called while a step of this worker is pushed and the next one not begun, or
 * it would wait for itself: workers go on with rubato_begin meanwhile, so the call only asks. */
RUBATO_API rubato_result rubato_checkpoint(rubato_client* client);
/* The same, until the checkpoint is complete: RUBATO_AGAIN meanwhile, and workers go on with rubato_begin and
 * rubato_skip, or push. Its directory is then in `directory`, which has room for `capacity` bytes, as text with a zero
 * byte at its end. */
RUBATO_API rubato_result rubato_await_checkpoint(rubato_client* client, char* directory, size_t capacity,
                                                 double seconds);

/* Copies what the servers keep of all tensors in this slot (rubato_set_state) to the memory of their gradients, and to
 * `updates`, one entry for each tensor, how many updates that stands for. Between rubato_begin and the step's first
 * push: in SYNC it is the state that belongs to the step's weights, otherwise others' pushes change it at the same
 * time. RUBATO_AGAIN: the memory is not to be used before it is there. */
RUBATO_API rubato_result rubato_fetch_state(rubato_client* client, uint32_t slot, int64_t* updates, double seconds);

/* This worker does something else than a step, such as an evaluation: training.step_timeout_seconds does not count
 * until its next rubato_begin. Others wait for it as the job's mode says. */
RUBATO_API rubato_result rubato_pause(rubato_client* client, const char* why);

/* Asks to leave the job after the step at work, so that another worker takes over this one's part: the next
 * rubato_begin returns RUBATO_ENDED. Any thread, and in a signal handler. While a client is open, SIGTERM to this
 * process does the same (and a second one ends the process), if the process had no handler of its own for it when the
 * client was opened. */
RUBATO_API rubato_result rubato_drain(rubato_client* client);

/* Leaves the job: with NULL because this worker has done its part, otherwise because of this error, which the others
 * see as the reason. Waits until all is acknowledged, at most the options' timeout. Frees the client in any case. */
RUBATO_API rubato_result rubato_close(rubato_client* client, const char* error);

/* Before rubato_begin, all of the step before is pushed: waits until the weights of this tensor for the next step are
 * in place, so that they may be read while those of later tensors come. They come in the model's order, which is best
 * that in which they are used: a tensor is there when all before it are. Pushes have to wait for rubato_begin, which
 * says whether what was read is valid. */
RUBATO_API rubato_result rubato_await(rubato_client* client, uint32_t tensor, double seconds);

/* Tables are numbered as rubato_model has them. Keys may be in any order, and may be there more than once: `rows` and
 * `gradients` have `dimension` floats for each of the `count` keys, in the order of the keys. What is read or pushed by
 * one call is 48 MiB at most, each key counted once.
 *
 * The next step needs the rows of these keys: they come with the answer to this step's push, and rubato_read_rows has
 * them without asking. After rubato_begin, before the table's rubato_push_rows; the last call counts.
 * RUBATO_INVALID for rows of all tables that are too large together: nothing is asked for then. */
RUBATO_API rubato_result rubato_ask_rows(rubato_client* client, uint32_t table, const uint64_t* keys, size_t count);
/* Copies rows to `rows`: in a step those that it may read, by the job's mode; otherwise as the servers have them.
 * Nothing is changed by it. After rubato_start, as often as needed. RUBATO_AGAIN: nothing was copied. */
RUBATO_API rubato_result rubato_read_rows(rubato_client* client, uint32_t table, const uint64_t* keys, size_t count,
                                          float* rows, double seconds);
/* The gradients of the step's rows, those of one key are added up; none of the keys that are left out. Once a step for
 * each table, also without keys, or rubato_skip. */
RUBATO_API rubato_result rubato_push_rows(rubato_client* client, uint32_t table, const uint64_t* keys, size_t count,
                                          const float* gradients, uint64_t examples);

#ifdef __cplusplus
}
#endif

#endif /* RUBATO_CLIENT_RUBATO_CLIENT_H_ */
