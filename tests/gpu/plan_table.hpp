// What plans of products have taken, as a table: a row for each product that was timed.
// Invariant: asks no GPU and no library.
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
  /// `step`: all products of a step of training, those that are the same as often as they are computed.
  explicit PlanTable(std::vector<nn::cuda::Product> step);

  /// What the columns are, and their titles.
  [[nodiscard]] std::string header() const;
  /// As PlanChoice::on_timed is told; at least one plan ran.
  [[nodiscard]] std::string row(const nn::cuda::Product& product, std::span<const nn::cuda::TimedPlan> plans);
  /// Of the step, by the rows so far; they are of all its products.
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
