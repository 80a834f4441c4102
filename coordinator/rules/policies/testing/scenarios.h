#ifndef RUBATO_COORDINATOR_RULES_POLICIES_TESTING_SCENARIOS_H_
#define RUBATO_COORDINATOR_RULES_POLICIES_TESTING_SCENARIOS_H_

#include <string>
#include <vector>

#include "coordinator/rules/policies/testing/training_model.h"
#include "proto/job_config.pb.h"

namespace rubato::coordinator {

// Eight workers, and how their steps differ: the models of Chen and others 2016 (exponential), Dutta and others 2018
// (Pareto), Luo and others 2019 (one that is slow for good, random slowdowns), Chen and others 2020 (speeds), some
// episodes, and one that is slow whatever its batch. `seed` is that of the stragglers.
std::vector<TrainingScenario> Scenarios(uint64_t seed);
// One of them. REQUIRES: there is one of that name.
TrainingScenario ScenarioNamed(const std::string& name, uint64_t seed);

// A training of 30 epochs whose learning rate is halved after 10 and 20, by workers whose way to the servers and back
// takes `overhead_seconds`.
TrainingScenario DistantServers(double overhead_seconds, uint64_t seed);

// Such workers, with a constant rate, each of which has data of its own.
TrainingScenario DistantOwners(double overhead_seconds, uint64_t seed);

// Rules without a policy that measures.
v1::ConsistencyConfig Rules(v1::Mode mode, uint32_t quorum = 0);
// A policy's, with the pace of a job of some minutes.
v1::ConsistencyConfig QuorumRules();
v1::ConsistencyConfig SyncThenAsyncRules(double share);
v1::ConsistencyConfig StalenessBudgetRules(v1::Mode mode, double budget);
// Of one whose settings are the defaults.
v1::ConsistencyConfig MeasuringRules(v1::ConsistencyConfig::Policy policy, v1::Mode mode = v1::SYNC,
                                     int64_t staleness_bound = 0);
// ADACOMM from 16 batches between two exchanges on, which decides every three windows.
v1::ConsistencyConfig AdaCommRules();

// The learning rate that `mode` takes in the place of SYNC's.
TrainingScenario WithRateOf(TrainingScenario scenario, v1::Mode mode, uint32_t quorum);

}  // namespace rubato::coordinator

#endif  // RUBATO_COORDINATOR_RULES_POLICIES_TESTING_SCENARIOS_H_
