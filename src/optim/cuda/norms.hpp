// Sums of squares on a device, range by range: of a gradient before prepare(), of parameters for lars.
// Invariant: the order of additions is the cut's, so a sum has the same bits on any GPU; it is finite if and only if
// all elements are, as double holds the square of every float32 and the sum of any number of them.
// Used by who enqueues a step.
#pragma once

#include "optim/cuda/arena.hpp"
#include "optim/cuda/pieces.hpp"

namespace lockstep::optim::cuda {

/// One number per piece, which may be some of an arena's in a row.
void squared_norms(Stream& stream, const Gradient& values, DeviceSpan<const Piece> pieces, DeviceSpan<double> partials);

/// The numbers of all pieces, added up: one per range.
void add_up(Stream& stream, DeviceSpan<const double> partials, DeviceSpan<const PieceRange> ranges,
            DeviceSpan<double> totals);

}  // namespace lockstep::optim::cuda
