// The tutorial's known answer: every rank fills a vector of four with its number, and each element of the sum is
// W(W-1)/2.
// Invariant: the collective is the benchmark's own, made through the registry.
// Used by --demo.
#pragma once

#include <vector>

#include "reduce_all/participants.hpp"
#include "runtime/communicator.hpp"
#include "runtime/topology.hpp"

namespace lockstep::reduce_all {

/// Collective: prints every rank's hello, its vector before and after, in rank order, and whether the sum is right.
/// Uses an algorithm made for this arrangement of ranks, if one takes part, else the first that supports it. Returns
/// true on all ranks if the sum is right on all.
[[nodiscard]] bool run_demo(const runtime::Communicator& world, const runtime::Topology& topology,
                            comm::Transport& transport, const std::vector<Participant>& participants);

}  // namespace lockstep::reduce_all
