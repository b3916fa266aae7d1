#include "comm/kernels_loops.hpp"

namespace lockstep::comm {
namespace {

/// Short vectors, which most processors have; for others the compiler splits them.
struct Plain : Portable {
  static constexpr Isa isa = Isa::plain;
  static constexpr std::size_t vector_bytes = 16;
};

}  // namespace

constinit const Kernels plain_kernels = make_kernels<Plain>();

}  // namespace lockstep::comm
