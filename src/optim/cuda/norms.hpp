// Sums of squares on a device, range by range: of a gradient before prepare(), of parameters.
// Invariant: the cut determines the order of additions, so a sum has the same bits on any GPU. It is finite if and only
// if all elements are: double holds the square of every float32 and any sum of them.
// Used by code that enqueues a step.
#pragma once

#include "optim/cuda/arena.hpp"
#include "optim/cuda/pieces.hpp"

namespace lockstep::optim::cuda {

/// Computes one number per piece; `pieces` may be a run of an arena's pieces.
void squared_norms(Stream& stream, const Gradient& values, DeviceSpan<const Piece> pieces, DeviceSpan<double> partials);

/// Adds up the numbers of all pieces: one sum per range.
void add_up(Stream& stream, DeviceSpan<const double> partials, DeviceSpan<const PieceRange> ranges,
            DeviceSpan<double> totals);

}  // namespace lockstep::optim::cuda
