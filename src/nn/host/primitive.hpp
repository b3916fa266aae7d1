// A oneDNN primitive with its arguments, ready to run.
// Invariant: run() allocates nothing of ours: the arguments are a fixed array for oneDNN's C interface.
// Used by the layers of nn/host.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "nn/host/dnnl_primitives.hpp"

namespace lockstep::nn::host {

/// Where primitives run, and how many of them only change a layout.
struct Run {
  dnnl::stream stream{};
  std::size_t n_reorders = 0;
};

class Primitive {
 public:
  using Arguments = std::vector<std::pair<int, dnnl::memory>>;

  Primitive() = default;
  Primitive(const_dnnl_primitive_desc_t described, const Arguments& arguments, bool is_reorder = false);

  void run(Run& run) const;

 private:
  dnnl::primitive primitive_{};
  std::vector<dnnl::memory> memories_{};  ///< keeps those of arguments_ alive
  std::vector<dnnl_exec_arg_t> arguments_{};
  bool is_reorder_ = false;
};

/// Runs them one after the other.
void run_all(const std::vector<Primitive>& primitives, Run& run);

}  // namespace lockstep::nn::host
