#include "optim/optimizer.hpp"

#include <algorithm>
#include <new>
#include <utility>

#include "core/error.hpp"
#include "optim/loops.hpp"

namespace lockstep::optim {
namespace {

constexpr std::align_val_t cache_line{64};

/// Reading shorter runs of zeros is faster than skipping them.
constexpr std::size_t least_gap = 1024;

using Array = std::unique_ptr<float[], void (*)(float*)>;

Array make_zeros(std::size_t n) {
  auto* values = static_cast<float*>(::operator new(n * sizeof(float), cache_line));
  std::fill_n(values, n, 0.0F);
  return {values, [](float* array) { ::operator delete(array, cache_line); }};
}

const RuleLoops& rule_loops(const OptimizerSpec& spec) noexcept {
  return loops().rules[static_cast<std::size_t>(spec.kind)];
}

Elements of_slice(const Elements& all, const core::Slice& slice) {
  Elements elements = all;
  elements.offset = slice.offset;
  elements.n = slice.count;
  return elements;
}

}  // namespace

Optimizer::Optimizer(const OptimizerSpec& spec, std::vector<Segment> segments, std::size_t n_elements)
    : spec_{spec}, n_elements_{n_elements}, segments_{std::move(segments)} {
  check(spec);
  check_segments();
  join_segments();
  for (const std::string_view name : state_names(spec_)) {
    arrays_.push_back(make_zeros(n_elements_));
    state_.push_back({name, {arrays_.back().get(), n_elements_}});
  }
  if (needs_norms()) norms_.resize(2 * segments_.size());
  gradient_norms_.resize(segments_.size());
}

void Optimizer::check_segments() const {
  std::size_t end = 0;
  for (const Segment& segment : segments_) {
    const auto& [offset, count] = segment.slice;
    core::require(offset >= end && offset <= n_elements_ && count <= n_elements_ - offset,
                  "segments ascend without overlap and lie in their part");
    end = segment.slice.end();
  }
}

void Optimizer::join_segments() {
  for (const Segment& segment : segments_) {
    const bool continues = !needs_norms() && !ranges_.empty() && ranges_.back().decays == segment.decays &&
                           ranges_.back().slice.end() == segment.slice.offset;
    if (continues)
      ranges_.back().slice.count += segment.slice.count;
    else
      ranges_.push_back(segment);
  }
}

Elements Optimizer::start_pass(float scale, Gradients gradients, std::span<float> parameters) {
  core::require(!gradients.empty(), "a step has the gradients of at least one rank");
  sources_.clear();
  for (const auto gradient : gradients) {
    core::require(gradient.size() == n_elements_, "gradients are as long as their part");
    sources_.push_back(gradient.data());
  }
  Elements all{
      .gradients = sources_.data(), .n_gradients = sources_.size(), .scale = scale, .parameters = parameters.data()};
  for (std::size_t i = 0; i < arrays_.size(); ++i) all.state[i] = arrays_[i].get();
  return all;
}

void Optimizer::step(double lr, float scale, Gradients gradients, std::span<float> parameters) {
  (void)begin_step(scale, gradients, parameters);
  finish_step(lr, scale, gradients, parameters);
}

std::span<double> Optimizer::begin_step(float scale, Gradients gradients, std::span<float> parameters) {
  if (!needs_norms()) return {};
  core::require(parameters.size() == n_elements_, "parameters are as long as their part");
  const Elements all = start_pass(scale, gradients, parameters);
  const RuleLoops& rule = rule_loops(spec_);
  for (std::size_t i = 0; i < segments_.size(); ++i) {
    const auto& [slice, decays] = segments_[i];
    const SquaredNorms norms =
        rule.measure(of_slice(all, slice), {.spec = spec_, .decays = decays, .step = n_steps_ + 1});
    norms_[2 * i] = norms.parameter;
    norms_[2 * i + 1] = norms.update;
  }
  return norms_;
}

void Optimizer::finish_step(double lr, float scale, Gradients gradients, std::span<float> parameters,
                            std::span<const core::Slice> touched) {
  core::require(parameters.size() == n_elements_, "parameters are as long as their part");
  const Elements all = start_pass(scale, gradients, parameters);
  ++n_steps_;
  for (std::size_t i = 0; i < ranges_.size(); ++i) {
    const auto& [slice, decays] = ranges_[i];
    const Settings settings{.spec = spec_, .decays = decays, .lr = lr, .step = n_steps_};
    if (needs_norms())
      rule_loops(spec_).update(of_slice(all, slice), settings, {norms_[2 * i], norms_[2 * i + 1]});
    else if (touched.empty())
      rule_loops(spec_).update(of_slice(all, slice), settings, {});
    else
      update_touched(of_slice(all, slice), touched, settings);
  }
}

/// Updates pieces with and without a gradient, in the order of the arena.
void Optimizer::update_touched(const Elements& range, std::span<const core::Slice> touched,
                               const Settings& settings) const {
  const std::size_t end = range.offset + range.n;
  std::size_t done = range.offset;
  const auto update_until = [&](std::size_t until, bool has_gradient) {
    if (std::min(until, end) <= done) return;
    Elements piece = of_slice(range, {done, std::min(until, end) - done});
    if (!has_gradient) piece.n_gradients = 0;
    rule_loops(spec_).update(piece, settings, {});
    done += piece.n;
  };
  for (const core::Slice& part : touched) {
    if (part.offset >= done + least_gap) update_until(part.offset, false);
    update_until(part.end(), true);
  }
  update_until(end, false);
}

std::span<const double> Optimizer::squared_norms(float scale, Gradients gradients) {
  const Elements all = start_pass(scale, gradients, {});
  for (std::size_t i = 0; i < segments_.size(); ++i)
    gradient_norms_[i] = loops().squared_gradient(of_slice(all, segments_[i].slice));
  return gradient_norms_;
}

}  // namespace lockstep::optim
