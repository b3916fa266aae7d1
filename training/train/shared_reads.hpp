// Tensors that all ranks read together, one after another, for one of them to use.
// Invariant: each rank makes all reads in the same order, whatever fails on it, so that no rank waits for another.
// Used by the learner for files of weights.
#pragma once

#include <cstddef>
#include <functional>

namespace lockstep::training {

/// A collective read of tensor `i`. If it throws on a rank, the others do not wait for that rank.
using ReadTensor = std::function<void(std::size_t i)>;

/// Collective: one rank has a `use`, which calls its argument for tensors 0, 1, ... in this order, as far as it gets.
/// Then each rank reads those of the `n` tensors that it has not read. Throws where something failed, after all reads:
/// the first failure on this rank.
void read_together(std::size_t n, const ReadTensor& read, const std::function<void(const ReadTensor& next)>& use = {});

}  // namespace lockstep::training
