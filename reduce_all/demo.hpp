// The tutorial's known answer: every rank brings its number in a vector of four, and the sum is W(W-1)/2 in each.
// Invariant: the collective is the benchmark's own, made through the registry.
// Used by --demo.
#pragma once

#include <vector>

#include "reduce_all/participants.hpp"
#include "runtime/communicator.hpp"
#include "runtime/topology.hpp"

namespace lockstep::reduce_all {

/// Collective: prints every rank's hello, its vector before and after, in rank order, and whether the sum is right; by
/// an algorithm made for this very arrangement of ranks, if one takes part, else the first that does.
/// True on all ranks if it is right on all.
[[nodiscard]] bool run_demo(const runtime::Communicator& world, const runtime::Topology& topology,
                            comm::Transport& transport, const std::vector<Participant>& participants);

}  // namespace lockstep::reduce_all
