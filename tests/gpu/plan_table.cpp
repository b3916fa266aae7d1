#include "gpu/plan_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace lockstep::test {
namespace {

using nn::cuda::Epilogue;
using nn::cuda::Product;
using nn::cuda::TimedPlan;

constexpr double never = std::numeric_limits<double>::infinity();

std::string in_words(const Product& product) { return fmt::format("{} {}", name(product), describe(product.problem)); }

Product without_epilogue(Product product) {
  product.epilogue = Epilogue::none;
  return product;
}

// The operations of each pass as it is computed: including padded channels.
double n_operations(const Product& product) {
  const nn::cuda::ConvProblem& p = product.problem;
  return 2.0 * static_cast<double>(p.y_elements()) * static_cast<double>(p.kernel * p.kernel * p.n_in);
}

bool is_split(const TimedPlan& timed) { return timed.plan.name == nn::cuda::split_name; }

bool is_hidden(const TimedPlan& timed) { return !timed.plan.is_listed && !is_split(timed); }

// cuDNN 9.19 has Hopper's own instructions for fused products in this engine, but lists others first.
bool is_of_engine_2(const TimedPlan& timed) {
  return timed.plan.name == "eng2" || timed.plan.name.starts_with("eng2_");
}

double least_of(std::span<const TimedPlan> plans, bool (*is_meant)(const TimedPlan&)) {
  double least = never;
  for (const TimedPlan& timed : plans)
    if (is_meant(timed)) least = std::min(least, timed.seconds);
  return least;
}

std::string microseconds(double seconds) { return std::isinf(seconds) ? "-" : fmt::format("{:.1f}", seconds * 1e6); }

std::string place_of(const TimedPlan& timed) {
  if (is_split(timed)) return "split";
  return timed.plan.is_listed ? fmt::format("{}", timed.plan.index + 1) : "hidden";
}

}  // namespace

PlanTable::PlanTable(std::vector<Product> step)
    : step_{std::move(step)},
      table_{{{.header = "product", .width = 25, .align = core::Align::left},
              {.header = "of", .width = 35, .align = core::Align::left},
              {.header = "in step"},
              {.header = "timed"},
              {.header = "fastest", .unit = "us", .width = 8},
              {.header = "rate", .unit = "TFLOP/s"},
              {.header = "place", .width = 6},
              {.header = "2nd", .unit = "us", .width = 8},
              {.header = "3rd", .unit = "us", .width = 8},
              {.header = "first", .unit = "us", .width = 8},
              {.header = "hidden", .unit = "us", .width = 8},
              {.header = "eng2", .unit = "us", .width = 8},
              {.header = "split", .unit = "us", .width = 8},
              {.header = "plan", .align = core::Align::left}}} {}

std::string PlanTable::header() const {
  return "of: n x height x width x channels by channels of the result x kernel / stride + padding\n"
         "in step: how often a step of training has this product, with or without what is done to its result\n"
         "place: of the fastest plan in the list of cuDNN's heuristics; hidden: of an engine that is not in it;\n"
         "  split: the product without what is done to its result, and a kernel of ours\n"
         "first: of the timed plans the one that heuristics list first; hidden, eng2: the fastest of hidden engines,\n"
         "  of engine 2; -: none was timed, or it cannot run or was far too slow\n"
         "last line: a step's products, with what is done to their results where a row has that, by the fastest\n"
         "  plans and by the first\n" +
         table_.header();
}

std::string PlanTable::row(const Product& product, std::span<const TimedPlan> plans) {
  std::vector<TimedPlan> ranked{plans.begin(), plans.end()};
  std::erase_if(ranked, [](const TimedPlan& timed) { return std::isinf(timed.seconds); });
  std::ranges::stable_sort(ranked, {}, &TimedPlan::seconds);
  const auto place = [&](std::size_t i) { return i < ranked.size() ? microseconds(ranked[i].seconds) : "-"; };
  const TimedPlan& fastest = ranked.at(0);
  const double first = plans.front().plan.is_listed ? plans.front().seconds : never;
  times_.insert_or_assign(in_words(product), Times{fastest.seconds, first});
  const std::string plain = in_words(without_epilogue(product));
  const auto n_in_step =
      std::ranges::count_if(step_, [&](const Product& other) { return in_words(without_epilogue(other)) == plain; });
  return table_.row({std::string{name(product)}, describe(product.problem), fmt::format("{}", n_in_step),
                     fmt::format("{}", ranked.size()), place(0),
                     fmt::format("{:.1f}", n_operations(product) / fastest.seconds / 1e12), place_of(fastest), place(1),
                     place(2), microseconds(first), microseconds(least_of(plans, is_hidden)),
                     microseconds(least_of(plans, is_of_engine_2)), microseconds(least_of(plans, is_split)),
                     fastest.plan.name});
}

std::string PlanTable::sums() const {
  double fastest = 0, first = 0, operations = 0;
  std::size_t n_with_first = 0;
  for (const Product& product : step_) {
    auto found = times_.find(in_words(product));
    if (found == times_.end()) found = times_.find(in_words(without_epilogue(product)));
    const Times& times = found->second;
    const bool has_first = !std::isinf(times.first);
    fastest += times.fastest;
    first += has_first ? times.first : times.fastest;
    n_with_first += has_first ? 1 : 0;
    operations += n_operations(product);
  }
  return fmt::format("{} products of a step: {:.3f} ms, {:.1f} TFLOP/s; with the first plan for {} of them {:.3f} ms\n",
                     step_.size(), fastest * 1e3, operations / fastest / 1e12, n_with_first, first * 1e3);
}

}  // namespace lockstep::test
