// The times of plans for products, as a table: a row for each product that was timed.
// Invariant: uses neither GPU nor library.
// Used by gpu_facts.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "core/table.hpp"
#include "nn/cuda/cudnn_graph.hpp"

namespace lockstep::test {

class PlanTable {
 public:
  /// `step`: all products of a training step; equal ones occur as often as they are computed.
  explicit PlanTable(std::vector<nn::cuda::Product> step);

  /// The meaning of the columns, and their titles.
  [[nodiscard]] std::string header() const;
  /// Arguments as in PlanChoice::on_timed; at least one plan ran.
  [[nodiscard]] std::string row(const nn::cuda::Product& product, std::span<const nn::cuda::TimedPlan> plans);
  /// The sums over a step, by the rows so far, which must cover all its products.
  [[nodiscard]] std::string sums() const;

 private:
  struct Times {
    double fastest = 0;
    double first = 0;  ///< of those that heuristics list; infinity if none was timed
  };

  std::vector<nn::cuda::Product> step_;
  core::Table table_;
  std::map<std::string, Times> times_{};  ///< by product, in words
};

}  // namespace lockstep::test
